/* What the page needs of probability: the normal law, binomial counts, a fast Fourier transform. */
(function (root) {
  "use strict";

  /* erfc by Chebyshev's polynomials, as in Numerical Recipes (3rd edition, 6.2.2): log erfc(z), z >= 0. */
  const COEFFICIENTS = [-1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3,
    -9.46595344482036e-4, 3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5, -1.624290004647e-6,
    1.303655835580e-6, 1.5626441722e-8, -8.5238095915e-8, 6.529054439e-9, 5.059343495e-9, -9.91364156e-10,
    -2.27365122e-10, 9.6467911e-11, 2.394038e-12, -6.886027e-12, 8.94487e-13, 3.13092e-13, -1.12708e-13,
    3.81e-16, 7.106e-15, -1.523e-15, -9.4e-17, 1.21e-16, -2.8e-17];
  function logErfc(z) {
    const t = 2 / (2 + z), ty = 4 * t - 2;
    let d = 0, dd = 0;
    for (let j = COEFFICIENTS.length - 1; j > 0; j--) [d, dd] = [ty * d - dd + COEFFICIENTS[j], d];
    return Math.log(t) - z * z + 0.5 * (COEFFICIENTS[0] + ty * d) - dd;
  }

  const logTail = (x) => -Math.LN2 + logErfc(x / Math.SQRT2); // log P(N > x), x >= 0
  const logNormal = (x) => (x <= 0 ? logTail(-x) : Math.log1p(-Math.exp(logTail(x))));
  const normal = (x) => (x <= 0 ? Math.exp(logTail(-x)) : 1 - Math.exp(logTail(x)));

  /* The quantile of the normal law, by bisection. */
  function quantile(q) {
    let low = -40, high = 40;
    for (let step = 0; step < 80; step++) {
      const middle = (low + high) / 2;
      if (normal(middle) < q) low = middle; else high = middle;
    }
    return (low + high) / 2;
  }

  const UNLIKELY = 1e-18;
  const fromTop = (counts) => { // P(c = 0), P(c = 1), ...: P(c >= 1), P(c >= 2), ...
    const out = [];
    let above = 0;
    for (let k = counts.length - 1; k > 0; k--) out[k - 1] = above = Math.min(1, above + counts[k]);
    return out;
  };
  const columns = (rows) => { // of all clients: [k](n,)
    const most = rows.reduce((longest, r) => Math.max(longest, r.length), 1);
    return Array.from({ length: most }, (_, k) => Float64Array.from(rows, (r) => r[k] || 0));
  };

  /* How often m draws with chance p hit: tails P(c >= k). */
  function binomialTails(chances, m) {
    return columns(Array.from(chances, (p) => {
      const counts = [Math.exp(m * Math.log1p(-p))];
      if (p >= 1) return fromTop([...new Array(m).fill(0), 1]);
      for (let k = 1, pmf = counts[0]; k <= m; k++) {
        pmf *= (m - k + 1) / k * p / (1 - p);
        if (pmf < UNLIKELY && k > m * p) break;
        counts.push(pmf);
      }
      return fromTop(counts);
    }));
  }

  /* The same with one draw for each of a client's chances. */
  function rowTails(rows) {
    return columns(rows.map((chances) => {
      let counts = [1];
      for (const r of chances) {
        const next = [...counts, 0].map((c) => c * (1 - r));
        counts.forEach((c, k) => { next[k + 1] += c * r; });
        counts = next;
      }
      while (counts.length > 2 && counts[counts.length - 1] < UNLIKELY) counts.pop();
      return fromTop(counts);
    }));
  }

  /* In place, of a power of two; the inverse is not divided by the length. */
  function fourier(re, im, inverse) {
    const n = re.length;
    for (let i = 1, j = 0; i < n; i++) {
      let bit = n >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) { [re[i], re[j]] = [re[j], re[i]]; [im[i], im[j]] = [im[j], im[i]]; }
    }
    for (let size = 2; size <= n; size <<= 1) {
      const half = size >> 1, angle = (inverse ? 2 : -2) * Math.PI / size;
      const cos = new Float64Array(half), sin = new Float64Array(half);
      for (let k = 0; k < half; k++) { cos[k] = Math.cos(angle * k); sin[k] = Math.sin(angle * k); }
      for (let start = 0; start < n; start += size) {
        for (let k = 0; k < half; k++) {
          const a = start + k, b = a + half;
          const x = re[b] * cos[k] - im[b] * sin[k], y = re[b] * sin[k] + im[b] * cos[k];
          re[b] = re[a] - x; im[b] = im[a] - y; re[a] += x; im[a] += y;
        }
      }
    }
  }

  Object.assign(root, { normal, logNormal, quantile, binomialTails, rowTails, fourier });
})(window.Explorer = window.Explorer || {});
