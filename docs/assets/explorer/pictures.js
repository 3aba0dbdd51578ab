/* Lines over clients or over m, as SVG: every scheme in its colour, the chosen one in front. */
(function (root) {
  "use strict";

  const W = 360, H = 190, LEFT = 44, RIGHT = 10, TOP = 12, BOTTOM = 34;
  const POINTS = 240;

  const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

  /* At most so many of the values, the first and the last among them. */
  function thinned(values) {
    const n = values.length, k = Math.min(n, POINTS);
    return Array.from({ length: k }, (_, i) => { const at = k > 1 ? Math.round(i * (n - 1) / (k - 1)) : 0; return [at + 1, values[at]]; });
  }

  /* Round numbers from low to high; powers of ten on a logarithmic axis. */
  function ticks(low, high, log) {
    const out = [];
    if (high - low < 1e-6 * high) return [low];
    if (log) {
      for (let e = Math.ceil(Math.log10(low) - 1e-9); 10 ** e <= high * 1.0001; e++) out.push(10 ** e);
      if (out.length > 5) return out.filter((_, i) => i % Math.ceil(out.length / 5) === 0);
      return out.length > 1 ? out : [low, high];
    }
    const raw = (high - low) / 4, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((s) => s * power >= raw) * power;
    for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) out.push(at);
    return out;
  }

  /* lines: [{ name, points: [[x, y], ...] }]; the chosen one is drawn last. */
  function picture({ title, x, y, lines, chosen, logX, logY, mark, top, percent }) {
    const shown = lines.map((line) => ({ ...line, points: line.points.filter((p) => Number.isFinite(p[1]) && (!logY || p[1] > 0)) })).filter((line) => line.points.length);
    const head = `<figure><figcaption><strong>${escape(title)}</strong></figcaption>`;
    if (!shown.length) return `${head}<p class="ex-note">Nothing to draw: no scheme leaves anything to chance here.</p></figure>`;
    const xs = shown.flatMap((l) => l.points.map((p) => p[0])), ys = shown.flatMap((l) => l.points.map((p) => p[1]));
    const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 1e-9);
    let y0 = logY ? Math.min(...ys) : 0, y1 = top || Math.max(...ys, 1e-12);
    if (logY) { y0 = Math.max(y0, y1 * 1e-6); if (y1 / y0 < 10) { y0 /= 2; y1 *= 2; } }
    const on = (value, low, high, log) => (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
    const px = (v) => LEFT + on(v, x0, x1, logX) * (W - LEFT - RIGHT), py = (v) => H - BOTTOM - Math.max(0, on(v, y0, y1, logY)) * (H - TOP - BOTTOM);
    const say = (v) => (percent ? `${root.short(v * 100)}%` : root.short(v, 5));
    const grid = ticks(y0, y1, logY).map((v) => `<line class="rule" x1="${LEFT}" x2="${W - RIGHT}" y1="${py(v).toFixed(1)}" y2="${py(v).toFixed(1)}"/><text x="${LEFT - 5}" y="${(py(v) + 3.5).toFixed(1)}" text-anchor="end">${say(v)}</text>`).join("");
    const below = ticks(x0, x1, logX).map((v) => `<text x="${px(v).toFixed(1)}" y="${H - BOTTOM + 14}" text-anchor="middle">${root.short(v, 4)}</text>`).join("");
    const order = [...shown].sort((a, b) => (a.name === chosen) - (b.name === chosen));
    const paths = order.map((line) => {
      const d = line.points.map(([a, b], i) => `${i ? "L" : "M"}${px(a).toFixed(1)} ${py(Math.min(b, y1)).toFixed(1)}`).join("") + (line.points.length > 1 ? "" : "h12");
      return `<path class="line ${line.name === chosen ? "chosen" : ""}" data-scheme="${line.name}" d="${d}"><title>${escape(line.name)}</title></path>`;
    }).join("");
    const here = mark === undefined ? "" : `<line class="mark" x1="${px(mark)}" x2="${px(mark)}" y1="${TOP}" y2="${H - BOTTOM}"/>`;
    const best = shown.find((line) => line.name === chosen);
    const ends = best ? ` ${chosen}: from ${say(best.points[0][1])} to ${say(best.points[best.points.length - 1][1])}.` : "";
    return `${head}<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${escape(`${title}. ${y} by ${x}.${ends}`)}">${grid}${below}${here}${paths}<text x="${(LEFT + W - RIGHT) / 2}" y="${H - 4}" text-anchor="middle">${escape(x)}</text></svg></figure>`;
  }

  /* The sizes as a filled area, the largest first. */
  function area(sizes) {
    const points = thinned(sizes), most = sizes[0], n = points.length;
    const d = points.map((p, i) => `L${(i / n * 300).toFixed(1)} ${(46 - 44 * p[1] / most).toFixed(1)}L${((i + 1) / n * 300).toFixed(1)} ${(46 - 44 * p[1] / most).toFixed(1)}`).join("");
    return `<svg viewBox="0 0 300 46" preserveAspectRatio="none" role="img" aria-label="Sizes from the largest, ${root.whole(most)}, to the smallest, ${root.whole(sizes[sizes.length - 1])}"><path d="M0 46${d}L300 46Z"/></svg>`;
  }

  Object.assign(root, { picture, area, thinned, escape });
})(window.Explorer = window.Explorer || {});
