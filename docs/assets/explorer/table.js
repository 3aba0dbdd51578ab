/* A file of sizes: one column, or id,size, or more columns of which one is chosen. */
(function (root) {
  "use strict";

  const MOST_CLIENTS = 200000;

  /* Rows of cells; cells in quotes may hold the separator. */
  function cells(text) {
    const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/).filter((line) => line.trim());
    if (!lines.length) return [];
    const mark = ["\t", ";", ","].find((each) => lines[0].includes(each)) || ",";
    return lines.map((line) => {
      const out = [""];
      let quoted = false;
      for (const c of line) {
        if (c === '"') quoted = !quoted;
        else if (c === mark && !quoted) out.push("");
        else out[out.length - 1] += c;
      }
      return out.map((cell) => cell.trim());
    });
  }

  const isSize = (cell) => cell !== "" && Number.isFinite(Number(cell)) && Number(cell) >= 0;

  /* { names, rows, column }: the columns, and which of them most likely has the sizes. */
  function readTable(text) {
    const rows = cells(text);
    if (!rows.length) throw new Error("The file is empty. It needs one line for each client, with its number of samples.");
    const width = rows[0].length;
    const headed = !rows[0].some(isSize) || (rows.length > 1 && rows[0].some((cell, k) => !isSize(cell) && isSize(rows[1][k] || "")));
    const names = headed ? rows.shift() : rows[0].map((_, k) => `column ${k + 1}`);
    if (!rows.length) throw new Error("The file has a line of names and nothing below it.");
    const wrong = rows.findIndex((row) => row.length !== width);
    if (wrong >= 0) throw new Error(`Line ${wrong + 1 + headed} has ${rows[wrong].length} columns, the first line has ${width}.`);
    const numeric = names.map((_, k) => k).filter((k) => rows.every((row) => isSize(row[k])));
    const likely = names.findIndex((name) => /^(size|sizes|samples|n|num[-_ ]?examples|count)$/i.test(name));
    const column = likely >= 0 ? likely : numeric.length ? numeric[width === 2 ? numeric.length - 1 : 0] : width - 1;
    return { names, rows, column, headed };
  }

  /* The sizes of one column, checked. */
  function sizesOf(table, column) {
    const { rows, headed, names } = table;
    if (rows.length > MOST_CLIENTS) throw new Error(`At most ${MOST_CLIENTS} clients here; got ${rows.length}. In a terminal, fedcohort advise takes more.`);
    const wrong = rows.findIndex((row) => !isSize(row[column]));
    if (wrong >= 0) throw new Error(`Line ${wrong + 1 + headed} of '${names[column]}' must be a number of samples, got '${rows[wrong][column]}'.`);
    const sizes = rows.map((row) => Number(row[column]));
    if (!sizes.some((s) => s > 0)) throw new Error(`No client has a sample in '${names[column]}'.`);
    return sizes;
  }

  Object.assign(root, { readTable, sizesOf });
})(window.Explorer = window.Explorer || {});
