/* The page itself: sliders, file, table, pictures. */
(function (root) {
  "use strict";
  const $ = (id) => document.getElementById(id);
  if (!$("explorer")) return;

  const DELTA = 1e-5;
  const SLIDERS = { // lowest, highest, at first; on a logarithmic scale; digits
    n: [2, 1000, 100, true, 0], skew: [0, 2.5, 1, false, 2], m: [1, 100, 10, true, 0], rounds: [1, 10000, 100, true, 0],
    heterogeneity: [0.01, 100, 1, true, 3], megabytes: [0.01, 10000, 4, true, 3], noise: [0.3, 10, 1, true, 2],
  };
  const state = { table: null, column: 0, ids: null, offered: null, chosen: null };
  for (const [key, [, , first]] of Object.entries(SLIDERS)) state[key] = first;

  let clients = SLIDERS.n[2]; // how many there are; m is cut to them where it is used, not where it is kept
  const limits = (key) => [key === "heterogeneity" ? 0 : SLIDERS[key][0], key === "m" ? clients : SLIDERS[key][1]];
  const now = (key) => (key === "m" ? Math.min(state.m, clients) : state[key]);
  const within = (key, value) => { const [low, high] = limits(key); return Math.min(high, Math.max(low, SLIDERS[key][4] ? value : Math.round(value))); };

  const position = (key, value) => {
    const [low, , , log] = SLIDERS[key], high = key === "m" ? Math.max(2, clients) : SLIDERS[key][1];
    return Math.max(0, log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
  };
  function valueAt(key, place) {
    const [low, , , log, digits] = SLIDERS[key], [least, high] = limits(key);
    if (place === 0) return least; // 0 has no place of its own on a logarithmic scale
    const raw = log ? low * (high / low) ** place : low + (high - low) * place;
    return digits === 0 ? Math.round(raw) : Number(log ? raw.toPrecision(digits) : raw.toFixed(digits));
  }

  /* A slider and a field for the same number, both with the label's name. */
  function slider(box) {
    const key = box.dataset.key, id = `ex-${key}`;
    box.innerHTML = `<label for="${id}">${box.dataset.words}</label><input type="number" id="${id}" inputmode="decimal" step="any"><input type="range" min="0" max="1" step="0.001" aria-label="${box.dataset.words}"><small role="status"></small>`;
    const [, number, range, limit] = box.children;
    box.show = () => {
      number.value = now(key);
      range.value = position(key, now(key));
      range.setAttribute("aria-valuetext", now(key));
      limit.textContent = "";
    };
    range.addEventListener("input", () => { state[key] = within(key, valueAt(key, Number(range.value))); update(); });
    range.addEventListener("keydown", (event) => { // by one where numbers are whole, whatever the scale
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!by || SLIDERS[key][4]) return;
      event.preventDefault();
      state[key] = within(key, now(key) + by);
      update();
    });
    number.addEventListener("change", () => {
      const given = Number(number.value), known = number.value !== "" && Number.isFinite(given);
      if (known) state[key] = within(key, given);
      update();
      const [low, high] = limits(key);
      if (known && now(key) !== given) limit.textContent = `${SLIDERS[key][4] ? "" : "Whole numbers "}from ${low} to ${high} here: ${given} became ${now(key)}.`;
    });
    return box;
  }
  const boxes = [...document.querySelectorAll(".ex-slider")].map(slider);

  const sizes = () => (state.table ? root.sizesOf(state.table, state.column) : root.madeUp(state.n, state.skew));

  function update() {
    const fed = root.federation(sizes());
    clients = fed.n;
    boxes.forEach((box) => box.show());
    const given = { m: now("m"), rounds: state.rounds, heterogeneity: state.heterogeneity, modelBytes: Math.round(state.megabytes * 1e6) };
    const advice = root.advise(fed, given, root.WORDS, {});
    const chosen = advice.rows.some((row) => row.name === state.chosen && !row.why) ? state.chosen : advice.best;
    showSizes(fed);
    showAdvice(advice);
    showTable(advice, chosen);
    showPictures(fed, advice, given, chosen);
    showUnseen(fed, advice.rows.find((row) => row.name === chosen), given);
    showCommand();
    later(advice, fed, given);
    remember();
  }

  function showSizes(fed) {
    const without = fed.left ? `; ${fed.left} without samples ${fed.left === 1 ? "is" : "are"} left out` : "";
    $("ex-sizes").innerHTML = root.area(fed.sizes);
    const [least, most] = [fed.sizes[fed.n - 1], fed.sizes[0]], range = least === most ? "" : `${root.whole(least)} to `, each = least === most && fed.n > 1 ? " each" : "";
    $("ex-about").textContent = `${root.counted(fed.n, "client")} with ${range}${root.counted(most, "sample")}${each}, Gini ${root.gini(fed).toFixed(2)}${without}.`;
    $("ex-made-up").hidden = Boolean(state.table);
    $("ex-save").hidden = Boolean(state.table);
    $("ex-forget").hidden = !state.table;
  }

  function showAdvice({ best, plain, aboutM }) {
    const head = best ? `Use <a href="schemes/${best}.html">${best}</a>.` : "Nothing can be recommended.";
    const lines = plain.map((line) => `<li>${root.escape(line)}</li>`).join("");
    const words = `<h2>${head}</h2><ul>${lines}</ul><p>${aboutM.map(root.escape).join(" ")}</p>`;
    if ($("ex-advice").words !== words) $("ex-advice").innerHTML = $("ex-advice").words = words; // read aloud when it changes
  }

  const rarely = (share) => (share > 0 && share < 1e-4 ? "&lt;0.01%" : `${root.short(share * 100, 2)}%`);

  function showTable({ rows, best }, chosen) {
    const most = Math.max(...rows.map((row) => row.score || 0), 1e-300);
    const body = rows.map((row) => {
      const name = `<label><input type="radio" name="ex-scheme" value="${row.name}" ${row.name === chosen ? "checked" : ""} ${row.why ? "disabled" : ""}><svg class="key" aria-hidden="true" viewBox="0 0 24 8"><path class="line ${row.name === chosen ? "chosen" : ""}" data-scheme="${row.name}" d="M0 4H24"/></svg>${row.name}${row.name === best ? ' <b class="best">best</b>' : ""}</label>`;
      const head = `<tr class="${row.name === chosen ? "chosen" : ""}"><th scope="row" title="${root.escape(root.WORDS[row.name].does)}">${name}</th>`;
      if (row.why) return `${head}<td colspan="7" class="why">${root.escape(row.why)}</td></tr>`;
      const bar = row.score == null ? '<span title="Scores of biased schemes cannot be compared">–</span>'
        : `<span class="bar" style="--part:${(row.score / most).toFixed(4)}">${root.short(row.score)}</span>`;
      const never = `${rarely(row.neverMean)} <small>(${rarely(row.neverWorst)})</small>`;
      return `${head}<td>${bar}</td><td>${root.short(row.bias < 1e-9 ? 0 : row.bias, 2)}</td><td>${root.short(row.distinct)}</td><td>${never}</td><td>${root.inBytes(row.bytesRound)}</td><td>${root.inBytes(row.bytesTotal)}</td><td data-price="${row.name}">…</td></tr>`;
    }).join("");
    const heads = ["Variance", "Bias", "Clients a round", "Never seen (worst)", "Bytes a round", "Bytes in all", "Epsilon"];
    const active = document.activeElement && document.activeElement.name === "ex-scheme";
    $("ex-table").innerHTML = `<caption class="ex-hidden">Every scheme that needs nothing but sizes</caption><thead><tr><th scope="col">Scheme</th>${heads.map((h) => `<th scope="col">${h}</th>`).join("")}</tr></thead><tbody>${body}</tbody>`;
    if (active) { const radio = document.querySelector("#ex-table input:checked"); if (radio) radio.focus(); }
  }

  function showPictures(fed, { rows }, given, chosen) {
    const known = rows.filter((row) => !row.why);
    const over = (values) => known.map((row) => ({ name: row.name, points: root.thinned(values(row)) }));
    const clients = "clients, the largest first", most = fed.n > 20000 ? 8 : 16;
    const ms = [...new Set(Array.from({ length: most }, (_, i) => Math.round(fed.n ** (i / (most - 1)))).concat(given.m))].sort((a, b) => a - b);
    const scores = known.filter((row) => row.score != null && row.name !== "full").map((row) => ({ name: row.name,
      points: ms.map((m) => { const at = root.facts(row.name, fed, { ...given, m }); return [m, at.why ? NaN : at.score]; }) }));
    $("ex-pictures").innerHTML = [
      { title: "Chance to take part in a round", x: clients, y: "Chance", lines: over((row) => row.law.chance), percent: true, top: 1 },
      { title: "What one answer counts, in shares of its data", x: clients, y: "Weight over share", lines: over((row) => row.law.weight.map((w, i) => w / fed.p[i])), logY: true },
      { title: `Chance never to be seen in ${root.counted(given.rounds, "round")}`, x: clients, y: "Chance", lines: over((row) => row.never), percent: true, top: 1 },
      { title: "Variance of a round, by clients per round", x: "m", y: "Variance", lines: scores, logX: true, logY: true, mark: given.m },
    ].map((each) => root.picture({ ...each, chosen })).join("");
  }

  /* Who is least likely to be seen, by name where the file has names. */
  function showUnseen(fed, row, given) {
    if (!row) return;
    const seen = root.sum(row.never), rounds = root.counted(given.rounds, "round");
    if (seen < 0.005) {
      const all = fed.n === 1 ? "the only client is" : fed.n === 2 ? "both clients are" : `all ${root.whole(fed.n)} clients are`;
      $("ex-unseen").textContent = `With ${row.name} ${all} all but certain to be seen in ${rounds}.`;
      return;
    }
    const worst = [...row.never.keys()].sort((a, b) => row.never[b] - row.never[a] || b - a).slice(0, 5);
    const said = worst.map((i) => `${state.ids ? state.ids[fed.order[i]] : `client ${fed.order[i] + 1}`} (${root.counted(fed.sizes[i], "sample")}) ${root.percent(row.never[i])}`);
    $("ex-unseen").textContent = `With ${row.name} about ${root.short(seen, 2)} of the ${root.whole(fed.n)} clients are never seen in ${rounds}. Most likely: ${said.join(", ")}.`;
  }

  const quoted = (word) => (/^[\w.][\w.-]*$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`); // as a shell reads it

  /* By name where it has one of its own, else by position; nothing where there is no choice. */
  function columnOption({ names, headed, column }, taken) {
    if (names.length === 1 || (names.length === 2 && taken === column)) return "";
    const own = headed && names[taken] && names.filter((name) => name === names[taken]).length === 1;
    return ` --column ${own ? quoted(names[taken]) : taken + 1}`;
  }

  function showCommand() {
    const file = state.table ? state.table.file : "sizes.csv", column = state.table ? columnOption(state.table, state.column) : "";
    $("ex-command").textContent = `fedcohort advise ${quoted(file)}${column} -m ${now("m")} --rounds ${state.rounds} --heterogeneity ${state.heterogeneity} --model-bytes ${Math.round(state.megabytes * 1e6)} --noise ${state.noise}`;
  }

  /* Epsilon takes a moment: scheme by scheme, when the sliders rest. */
  let turn = 0;
  function later(advice, fed, given) {
    const mine = ++turn, todo = advice.rows.filter((row) => !row.why), known = {};
    const next = () => {
      if (mine !== turn) return;
      const row = todo.shift();
      if (!row) return;
      const alike = { fedavg: "uniform", uniform: "fedavg" }[row.name]; // the same choice, the weights to scale
      known[row.name] = known[alike] ?? root.price(row.law, given.rounds, state.noise, DELTA).epsilon;
      const cell = document.querySelector(`[data-price="${row.name}"]`);
      if (cell) cell.textContent = root.epsilon(known[row.name]);
      showAdvice({ ...advice, plain: root.threeSentences(advice, fed, given, root.WORDS, known) });
      setTimeout(next, 0);
    };
    setTimeout(next, 200);
  }

  /* The sliders are part of the address, so that what one sees can be sent to somebody. */
  function remember() {
    const given = state.table ? "" : Object.keys(SLIDERS).map((key) => `${key}=${now(key)}`).join("&");
    if (given) try { history.replaceState(null, "", `#${given}`); } catch { /* opened from a place without a history */ }
  }
  function recall() {
    for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
      const value = Number(text);
      if (key in SLIDERS && text && Number.isFinite(value)) state[key] = key === "m" ? Math.max(1, Math.round(value)) : within(key, value);
    }
  }

  function fail(message) { $("ex-error").textContent = message; }

  /* The columns of a table to choose from; none is chosen yet where nothing says which. */
  function offer(table, column) {
    state.offered = table;
    $("ex-column-box").hidden = !table || table.names.length < 2;
    if (!table) return;
    const ask = column === null ? '<option value="" selected disabled>choose</option>' : "";
    $("ex-column").innerHTML = ask + table.names.map((name, k) => `<option value="${k}" ${k === column ? "selected" : ""}>${root.escape(name || `column ${k + 1}`)}</option>`).join("");
  }

  /* Take one column of a table; if that fails, what was there before stays, whole. */
  function take(table, column) {
    const before = { ...state };
    try {
      root.sizesOf(table, column);
      Object.assign(state, { table, column, ids: root.idsOf(table, column) });
      update();
      offer(table, column);
      $("ex-file-words").textContent = table.file;
    } catch (error) {
      Object.assign(state, before);
      offer(before.table, before.column);
      update();
      fail(error.message);
    }
  }
  async function read(file) {
    fail("");
    try {
      const table = root.readTable(root.decoded(await file.arrayBuffer(), file.name), file.name);
      if (table.column !== null) { take(table, table.column); return; }
      offer(table, null);
      fail(`${file.name} has ${table.names.length} columns: choose the one that has the sizes.`);
    } catch (error) { offer(state.table, state.column); fail(error.message); }
  }

  $("ex-file").addEventListener("change", (event) => {
    if (event.target.files[0]) read(event.target.files[0]);
    event.target.value = ""; // the same file, mended, is a change
  });
  $("ex-column").addEventListener("change", (event) => { fail(""); take(state.offered, Number(event.target.value)); });
  $("ex-forget").addEventListener("click", () => {
    Object.assign(state, { table: null, ids: null });
    offer(null);
    $("ex-file-words").innerHTML = "<strong>Drop a CSV of sizes</strong>, or choose one: a column of sizes, or id,size";
    fail("");
    update();
  });
  $("ex-save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`id,size\n${sizes().map((s, i) => `client-${i + 1},${s}`).join("\n")}\n`], { type: "text/csv" }));
    link.download = "sizes.csv";
    link.click();
    URL.revokeObjectURL(link.href);
  });
  $("ex-table").addEventListener("change", (event) => { state.chosen = event.target.value; update(); });
  for (const name of ["dragover", "drop", "dragleave"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      $("ex-drop").classList.toggle("over", name === "dragover");
      if (name === "drop" && event.dataTransfer.files[0]) read(event.dataTransfer.files[0]);
    });
  }

  recall();
  update();
})(window.Explorer = window.Explorer || {});
