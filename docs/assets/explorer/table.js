/* A file of sizes: one column, or id,size, or more columns of which one is chosen. It is read as
   fedcohort.cli.tables and fedcohort.cli.columns read it, and refused in their words. */
(function (root) {
  "use strict";

  const MOST_CLIENTS = 200000, LARGEST = 1e15;
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const THOUSANDS = /^\d{1,3}([.,' \u00a0\u2009\u202f]\d{3})+$/;

  /* The text of a file; spreadsheets save as something else if they are not asked. */
  function decoded(bytes, file) {
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
      throw new Error(`${file} must be a text file (UTF-8, CSV), and is not: in a spreadsheet, save it as 'CSV UTF-8'.`);
    }
  }

  /* [{ line, cells }] of the lines that are not empty; cells in quotes may hold the separator. */
  function rowsOf(text) {
    const first = text.split(/\r\n|\n|\r/).find((each) => each.trim()) || "";
    const said = first.match(/^"?sep=([,;\t])"?\s*$/i); // as Excel writes it
    const count = (mark) => first.split(mark).length;
    const mark = said ? said[1] : [",", ";", "\t"].reduce((best, each) => (count(each) > count(best) ? each : best));
    const out = [];
    let cells = [""], quoted = false, line = 1;
    const end = () => {
      const row = cells.map((cell) => cell.trim());
      if (row.some((cell) => cell)) out.push({ line, cells: row });
      cells = [""];
    };
    for (let i = 0; i < text.length; i++) {
      const c = text[i], last = cells.length - 1;
      if (quoted && c === '"' && text[i + 1] === '"') { cells[last] += c; i++; }
      else if (quoted && c === '"') quoted = false;
      else if (!quoted && c === '"' && !cells[last].trim()) { cells[last] = ""; quoted = true; }
      else if (!quoted && c === mark) cells.push("");
      else if (c === "\n" || c === "\r") {
        if (c === "\r" && text[i + 1] === "\n") i++;
        if (quoted) cells[last] += "\n"; else end();
        line++;
      } else cells[last] += c;
    }
    end();
    return said ? out.slice(1) : out;
  }

  const isNumber = (cell) => NUMBER.test(cell);
  const wordsOf = (name) => name.trim().toLowerCase().split(/[\s_-]+/);
  const isSizeName = (name) => root.HEADINGS.size.includes(wordsOf(name).join("-"));
  const isIdName = (name) => { const words = wordsOf(name); return root.HEADINGS.id.includes(words.join("-")) || root.HEADINGS.idWords.includes(words[words.length - 1]); };
  const isHeading = (cell) => /^#?\s*\p{L}/u.test(cell) && !root.HEADINGS.noAnswers.includes(cell.toLowerCase());
  const unmistakable = (cells) => cells.some((cell) => cell.toLowerCase() === "id");

  /* Of at most two columns: the one that is called so, or beside ids, with a number below; else the last. */
  function placeOfSizes(rows) {
    const first = rows[0].cells, below = rows[Math.min(1, rows.length - 1)].cells;
    let known = [...first.keys()].filter((k) => isSizeName(first[k]));
    if (!known.length && isIdName(first[first.length - 1]) && !isIdName(first[0])) known = [0];
    return known.length === 1 && below.length === first.length && isNumber(below[known[0]]) ? known[0] : first.length - 1;
  }

  /* { file, names, rows, headed, column }; the column is null where it must be asked for. */
  function readTable(text, file) {
    let rows = rowsOf(text), column = null;
    if (!rows.length) throw new Error(`${file} has no sizes; it must have one line per client.`);
    const first = rows[0].cells, width = first.length, named = !first.some(isNumber);
    let headed = unmistakable(first) || (width > 2 ? named || first.some(isSizeName) : false);
    if (width <= 2) {
      column = placeOfSizes(rows);
      headed = headed || isSizeName(first[column]) || (named && isHeading(first[column]));
    }
    const names = headed ? first : first.map((_, k) => `column ${k + 1}`);
    rows = rows.slice(Number(headed));
    if (!rows.length) throw new Error(width > 2 ? `${file} has no clients below its line of names.` : `${file} has no sizes; it must have one line per client.`);
    if (rows.length > MOST_CLIENTS) throw new Error(`${file} has ${rows.length} clients, and here are at most ${MOST_CLIENTS}. In a terminal, fedcohort advise takes more.`);
    const wrong = rows.find((row) => row.cells.length !== width);
    if (wrong) throw new Error(`${file}, line ${wrong.line}: ${width} columns as in line 1; got ${wrong.cells.length}.`);
    const table = { file, names, rows, headed, column };
    if (column === null) {
      const known = [...names.keys()].filter((k) => headed && isSizeName(names[k]));
      const able = known.length === 1 ? known : likely(table);
      table.column = able.length === 1 ? able[0] : null;
    }
    return table;
  }

  /* Columns that may have the sizes: numbers, and neither ids nor 1, 2, 3, ... */
  function likely({ names, rows, headed }) {
    return [...names.keys()].filter((k) => rows.every((row) => isNumber(row.cells[k]))
      && !rows.every((row, i) => row.cells[k] === String(i + 1)) && !(headed && isIdName(names[k])));
  }

  function whole(text, file, line) {
    const must = `${file}, line ${line}: a size must be a whole number from 0 to 10^15`, cut = text.slice(0, 40);
    if (THOUSANDS.test(text)) throw new Error(`${must}; got '${cut}': if ${text.replace(/\D/g, "").slice(0, 40)} is meant, write it so.`);
    const value = Number(text);
    if (!isNumber(text) || !Number.isInteger(value)) throw new Error(`${must}; got '${cut}'.`);
    if (value < 0 || value > LARGEST) throw new Error(`${must}; got ${cut}.`);
    return value;
  }

  /* The sizes of one column, checked. */
  function sizesOf({ file, names, rows }, column) {
    const sizes = rows.map(({ cells, line }) => whole(cells[column], file, line));
    if (!sizes.some((s) => s > 0)) throw new Error(`${file}: no client has a sample in '${names[column]}'.`);
    return sizes;
  }

  /* Names of the clients: a column that is called so, or the other of two, or the first if it has words; or null. */
  function idsOf({ file, names, rows, headed }, column) {
    const free = [...names.keys()].filter((k) => k !== column), words = (k) => !rows.every((row) => isNumber(row.cells[k]));
    const place = [...free.filter((k) => headed && isIdName(names[k])), ...free.filter((k) => names.length === 2 || (k === 0 && words(k)))][0];
    if (place === undefined) return null;
    const seen = new Map();
    return rows.map(({ cells, line }) => {
      const id = cells[place];
      if (seen.has(id)) throw new Error(`${file}, line ${line}: the id '${id.slice(0, 40)}' stands in line ${seen.get(id)} already.`);
      seen.set(id, line);
      return id;
    });
  }

  Object.assign(root, { decoded, readTable, sizesOf, idsOf });
})(window.Explorer = window.Explorer || {});
