"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const night = matchMedia("(prefers-color-scheme: dark)");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const say = (text) => { document.getElementById("status").textContent = text; };
  const hidden = new Set(); // positions of the schemes that are not drawn
  const drawn = new Set(); // plots that have been on screen
  let printing = false;

  // ---------------------------------------------------------------- theme
  const theme = () => (printing ? "light" : root.dataset.theme || (night.matches ? "dark" : "light"));
  const themeButton = document.getElementById("theme");
  function showTheme() {
    const next = theme() === "dark" ? "Light" : "Dark";
    themeButton.textContent = next;
    themeButton.setAttribute("aria-label", next + " theme");
    redraw();
  }
  themeButton.addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    showTheme();
  });
  night.addEventListener("change", showTheme);

  // ---------------------------------------------------------------- plots
  const HEAT = {
    light: [[0, "#f3f5f8"], [0.35, "#9ecae1"], [0.7, "#2171b5"], [1, "#08306b"]],
    dark: [[0, "#1d2530"], [0.35, "#2b5f8c"], [0.7, "#63ade0"], [1, "#f2f8ff"]],
  };

  function painted(trace) {
    const colours = getComputedStyle(root);
    const of = (name) => colours.getPropertyValue(name).trim();
    const own = data.palettes[theme()][trace.meta.colour ?? 0];
    const out = { ...trace, line: { ...trace.line }, marker: { ...trace.marker } };
    switch (trace.meta.role) {
      case "line": out.line.color = out.marker.color = own; break;
      case "band": out.line.color = own; out.fillcolor = own + (theme() === "dark" ? "30" : "22"); break;
      case "box": out.line.color = own; out.fillcolor = own + "33"; break;
      case "cluster": out.marker.color = own; break;
      case "theory": out.marker.color = of("--text"); break;
      case "measured": case "bar": out.marker.color = of("--accent"); break;
      case "bar2": out.marker.color = of("--muted"); break;
      case "plain": out.line.color = of("--text"); break;
      case "guide": out.line.color = out.marker.color = of("--muted"); break;
      case "heat":
        out.colorscale = HEAT[theme()];
        delete out.line; delete out.marker;
        if (out.colorbar) out.colorbar = { ...out.colorbar, outlinewidth: 0 };
        break;
    }
    if (trace.type === "bar") delete out.line;
    return out;
  }

  function merged(base, change) {
    const out = { ...base };
    for (const [key, value] of Object.entries(change)) {
      const both = value && typeof value === "object" && !Array.isArray(value) && out[key];
      out[key] = both ? merged(out[key], value) : value;
    }
    return out;
  }

  function settings(key) {
    const out = {};
    for (const input of all(`[data-figure="${key}"]`)) {
      if (input.type !== "radio" || input.checked) out[input.dataset.switch] = input.value;
    }
    for (const item of data.figures[key].switches) out[item.key] ??= item.options[0][0];
    return out;
  }

  function layout(spec, chosen, place) {
    const colours = getComputedStyle(root);
    const of = (name) => colours.getPropertyValue(name).trim();
    const narrow = place.clientWidth < 520;
    const axis = {
      gridcolor: of("--grid"), linecolor: of("--line"), zerolinecolor: of("--line"),
      automargin: true, title: { standoff: 8 }, fixedrange: narrow,
    };
    let out = {
      height: 400, margin: { l: narrow ? 44 : 64, r: 14, t: 10, b: 44 }, showlegend: false,
      paper_bgcolor: "transparent", plot_bgcolor: "transparent", hovermode: "closest",
      font: { family: "system-ui, sans-serif", size: narrow ? 11 : 13, color: of("--text") },
      hoverlabel: { bgcolor: of("--surface"), bordercolor: of("--line"), font: { color: of("--text") }, namelength: 40 },
      modebar: { bgcolor: "transparent", color: of("--muted"), activecolor: of("--accent") },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      dragmode: narrow ? false : "zoom", xaxis: axis, yaxis: axis,
    };
    out = merged(out, spec.layout);
    for (const [key, value] of Object.entries(chosen)) out = merged(out, spec.layouts[`${key}=${value}`] ?? {});
    if (narrow && out.xaxis.dtick === "D2") out.xaxis = { ...out.xaxis, tickfont: { size: 9 } };
    out.shapes = (out.shapes ?? []).map((shape) => merged(shape, { line: { color: of("--muted") } }));
    if (printing) out.width = 900; // browsers shrink what is wider than the paper
    return out;
  }

  function draw(place) {
    const spec = data.figures[place.dataset.key];
    const chosen = settings(place.dataset.key);
    const fits = (trace) =>
      Object.entries(trace.meta.when).every(([key, value]) => chosen[key] === value) &&
      !(trace.meta.scheme !== null && hidden.has(trace.meta.scheme));
    const traces = spec.traces.filter(fits).map(painted);
    const options = { displaylogo: false, responsive: true, displayModeBar: place.clientWidth >= 520,
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
      toImageButtonOptions: { format: "svg", filename: place.dataset.key } };
    Plotly.react(place, traces, layout(spec, chosen, place), options);
    drawn.add(place);
  }
  function redraw() { drawn.forEach(draw); }

  const places = all(".plot");
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && !drawn.has(entry.target)) draw(entry.target);
    }
  }, { rootMargin: "500px" });
  places.forEach((place) => watcher.observe(place));

  for (const input of all("[data-figure]")) {
    input.addEventListener("change", () => {
      draw(document.getElementById("plot-" + input.dataset.figure));
      const text = input.selectedOptions?.[0]?.textContent ?? input.parentElement.textContent;
      say("Showing " + text.trim());
    });
  }

  // ---------------------------------------------------------------- which schemes are drawn
  const chips = all(".chip input");
  function chosenSchemes() {
    hidden.clear();
    chips.forEach((chip) => { if (!chip.checked) hidden.add(Number(chip.value)); });
    redraw();
    say(`${chips.length - hidden.size} of ${chips.length} schemes are drawn`);
  }
  chips.forEach((chip) => chip.addEventListener("change", chosenSchemes));
  for (const button of all("[data-show]")) {
    button.addEventListener("click", () => {
      const wanted = new Set(data.groups[button.dataset.show]);
      chips.forEach((chip) => { chip.checked = wanted.has(Number(chip.value)); });
      chosenSchemes();
    });
  }

  // ---------------------------------------------------------------- tables
  function sortBy(heading) {
    const row = heading.parentElement;
    const body = row.closest("table").tBodies[0];
    const place = [...row.children].indexOf(heading);
    const down = heading.getAttribute("aria-sort") !== "descending";
    const text = place === 0;
    const up = text ? heading.getAttribute("aria-sort") !== "ascending" : !down;
    [...row.children].forEach((other) => other.setAttribute("aria-sort", "none"));
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = (line) => line.children[place].dataset.value;
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === ""); // what is missing comes last
      const order = text ? x.localeCompare(y) : Number(x) - Number(y);
      return up ? order : -order;
    });
    body.append(...rows);
    say(`Sorted by ${heading.textContent.trim()}, ${up ? "ascending" : "descending"}`);
  }
  all(".sortable thead th").forEach((heading) => {
    heading.querySelector("button").addEventListener("click", () => sortBy(heading));
  });

  function showGaps(reference) {
    const pairs = data.pairs[Number(reference.value)];
    for (const row of all("tbody tr", reference.closest(".schemes"))) {
      const found = pairs[data.schemes.indexOf(row.dataset.scheme)];
      for (const part of ["gap", "p", "these", "t"]) {
        const shown = row.querySelector(`.${part}`);
        if (!shown) continue;
        const cell = shown.closest("td");
        shown.textContent = found ? found[part][0] : "–";
        cell.dataset.value = found ? found[part][1] ?? "" : "";
      }
    }
  }
  for (const reference of all(".reference")) reference.addEventListener("change", () => showGaps(reference));

  // ---------------------------------------------------------------- print, place in the page
  addEventListener("beforeprint", () => { printing = true; places.forEach(draw); });
  addEventListener("afterprint", () => { printing = false; redraw(); });
  document.getElementById("print").addEventListener("click", () => print());
  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  all("main > section").forEach((section) => seen.observe(section));

  showTheme();
  root.dataset.ready = "true";
})();
