/* The schemes that need nothing but sizes: chances, weights, variances. The same numbers as the
   library's designs; tests/site/test_explorer.py compares the two in a browser. */
(function (root) {
  "use strict";

  const sum = (values) => { let total = 0; for (const v of values) total += v; return total; };
  const map = (values, f) => Float64Array.from(values, f);
  const same = (n, value) => new Float64Array(n).fill(value);

  /* Clients by decreasing size; those without samples are left out, as everywhere. */
  function federation(sizes) {
    const order = [...sizes.keys()].filter((i) => sizes[i] > 0).sort((a, b) => sizes[b] - sizes[a]);
    const sorted = map(order, (i) => sizes[i]), total = sum(sorted);
    return { order, sizes: sorted, total, n: order.length, left: sizes.length - order.length,
      p: map(sorted, (s) => s / total), squares: sum(map(sorted, (s) => (s / total) ** 2)) };
  }

  /* Deterministic sizes: quantiles of a log-normal law around 100 samples; skew is its sigma. */
  function madeUp(n, skew) {
    return Array.from({ length: n }, (_, i) => Math.max(1, Math.round(100 * Math.exp(skew * root.quantile((n - i - 0.5) / n)))));
  }

  /* sum |s_i - s_j| / (2 n sum s): 0 where all are equal. */
  function gini(fed) {
    const { sizes, n, total } = fed;
    return sum(sizes.map((s, i) => s * (n - 1 - 2 * i))) / (n * total);
  }

  /* A law that draws no client twice: chances q, weights v of those who are drawn. */
  function once(q, v, more) {
    return { chance: q, draws: q, weight: v, variance: map(q, (c, i) => v[i] ** 2 * c * (1 - c)), tails: [q], ...more };
  }

  function simple(fed, m, weight) {
    const { n, p } = fed, q = m / n, v = map(p, weight);
    const spread = n > 1 ? q * (1 - q) * n / (n - 1) * Math.max(0, sum(map(v, (x) => x * x)) - sum(v) ** 2 / n) : 0;
    return once(same(n, q), v, { sumVariance: spread, displaced: others(v) });
  }

  /* The largest weight among the others. */
  function others(v) {
    const first = v[0], second = v.length > 1 ? v[1] : 0;
    return map(v, (_, i) => (v.length < 2 ? 0 : i === 0 ? second : first));
  }

  function independent(q, v) {
    const law = once(q, v, { displaced: same(q.length, 0), alpha: 0 });
    return { ...law, sumVariance: sum(law.variance) };
  }

  /* Chances in proportion to sizes; who would have more than 1 is always there. */
  function capped(fed, m) {
    let rest = fed.total, sure = 0;
    while (sure < fed.n && (m - sure) * fed.sizes[sure] >= rest * (1 - 1e-15)) rest -= fed.sizes[sure++];
    return map(fed.sizes, (s, i) => (i < sure ? 1 : Math.min(1, (m - sure) * s / rest)));
  }

  /* One other gives way, or (Infinity) nothing is known of who does. */
  function fixed(fed, m, swaps) {
    const q = capped(fed, m), v = map(q, (c, i) => fed.p[i] / c), open = [...q.keys()].filter((i) => q[i] < 1);
    const given = swaps ? (open.length > 1 ? v[open[0]] : 0) : Infinity;
    return once(q, v, { sumVariance: 0, displaced: map(q, (c) => (c < 1 ? given : 0)) });
  }

  /* m draws from the same chances. */
  function alike(fed, m) {
    const { n, p } = fed;
    const chance = map(p, (x) => -Math.expm1(m * Math.log1p(-x)));
    return { chance, draws: map(p, (x) => m * x), weight: same(n, 1 / m), variance: map(p, (x) => x * (1 - x) / m),
      tails: root.binomialTails(p, m), displaced: same(n, n > 1 ? 1 / m : 0), sumVariance: 0, alpha: 1 / m };
  }

  /* The line of clients cut into m pieces of equal length, one draw from each. */
  function clustered(fed, m) {
    const { n, sizes, total } = fed;
    const rows = Array.from({ length: n }, () => []);
    let used = 0; // of the piece that is being filled
    for (let i = 0; i < n; i++) {
      let mass = m * sizes[i];
      while (mass > 0) {
        const part = Math.min(mass, total - used);
        rows[i].push(part / total);
        mass -= part; used += part;
        if (used >= total) used = 0;
      }
    }
    const missed = (r) => r.reduce((left, x) => left * (1 - x), 1);
    return { chance: map(rows, (r) => 1 - missed(r)), draws: map(rows, (r) => sum(r)), weight: same(n, 1 / m),
      variance: map(rows, (r) => r.reduce((v, x) => v + x * (1 - x), 0) / m ** 2),
      tails: root.rowTails(rows), displaced: same(n, n > 1 ? 1 / m : 0), sumVariance: 0,
      alpha: m === 1 ? 1 : undefined };
  }

  const LAWS = {
    full: (fed) => once(same(fed.n, 1), fed.p, { sumVariance: 0, displaced: same(fed.n, 0), alpha: 0 }),
    uniform: (fed, m) => ({ ...simple(fed, m, (x) => x * fed.n / m), alpha: fed.n > 1 ? (fed.n - m) / (m * (fed.n - 1)) : 0 }),
    md: alike,
    "clustered-size": clustered,
    pivotal: (fed, m) => fixed(fed, m, true), // of those that chance decides on all weigh the same
    systematic: (fed, m) => fixed(fed, m, false),
    poisson: (fed, m) => (m * fed.sizes[0] > fed.total
      ? { why: `Needs a chance m p of at most 1: at most m = ${Math.floor(fed.total / fed.sizes[0])} here, or cap=true.` }
      : independent(map(fed.p, (x) => Math.min(1, m * x)), same(fed.n, 1 / m))),
    binomial: (fed, m) => independent(same(fed.n, m / fed.n), map(fed.p, (x) => x * fed.n / m)),
    fedavg: (fed, m) => simple(fed, m, (x) => x),
  };
  const ANY_M = new Set(["full", "md", "clustered-size", "poisson"]);

  /* The law of a scheme, or { why } where it has none here. */
  function law(name, fed, m) {
    if (m > fed.n && !ANY_M.has(name)) return { why: `Draws m different clients, and there are ${fed.n}.` };
    return LAWS[name](fed, m);
  }

  Object.assign(root, { sum, federation, madeUp, gini, law, NAMES: Object.keys(LAWS) });
})(window.Explorer = window.Explorer || {});
