/* From laws to facts, and from facts to advice, by the rules of fedcohort.advice.advise, in its words. */
(function (root) {
  "use strict";

  const UNBIASED = 1e-9, TIE = 1e-9, SAVES = 0.1, RARELY = 0.01, CHEAPER = 0.95;
  const PLAINEST = ["full", "uniform", "md"];
  const STEPS = [1, 1.5, 2, 3, 5, 7];

  /* What is known of one scheme; null for the score of a biased one, { why } where it does not apply. */
  function facts(name, fed, given) {
    const law = root.law(name, fed, given.m);
    if (law.why) return { name, why: law.why };
    const n = fed.n, mean = law.draws.map((c, i) => c * law.weight[i]);
    const bias = root.sum(mean.map((w, i) => Math.abs(w - fed.p[i])));
    const sigma = root.sum(law.variance), distinct = root.sum(law.chance);
    const never = law.chance.map((q) => Math.exp(given.rounds * Math.log1p(-Math.min(1, q))));
    return { name, law, bias, sigma, sumVariance: law.sumVariance, distinct, never,
      neverMean: root.sum(never) / n, neverWorst: never.reduce((a, b) => Math.max(a, b), 0),
      bytesRound: 2 * distinct * given.modelBytes, bytesTotal: 2 * distinct * given.modelBytes * given.rounds,
      twice: law.draws.some((c, i) => c > law.chance[i] * (1 + 1e-9)),
      score: bias < UNBIASED ? given.heterogeneity * sigma + law.sumVariance : null };
  }

  const eligible = (row, m) => row.score != null && row.distinct <= m * (1 + TIE);

  /* The least score; of equals the one whose weights vary least, that treats all pairs alike, the plainest. */
  function chosen(rows, m) {
    const able = rows.filter((row) => eligible(row, m));
    if (!able.length) return null;
    const least = Math.min(...able.map((row) => row.score));
    const plain = (row) => (PLAINEST.includes(row.name) ? PLAINEST.indexOf(row.name) : PLAINEST.length);
    const key = (row) => [Number(row.sigma.toPrecision(9)), row.law.alpha === undefined ? 1 : 0, -Number(row.distinct.toFixed(6)), plain(row)];
    return able.filter((row) => row.score <= least * (1 + TIE) + 1e-300).sort((a, b) => {
      const x = key(a), y = key(b), k = x.findIndex((value, i) => value !== y[i]);
      return k < 0 ? (a.name < b.name ? -1 : 1) : x[k] - y[k];
    })[0];
  }

  /* r(m): the variance of a round beside the squared length of what it estimates. */
  function noiseOf(name, fed, heterogeneity) {
    const strength = 1 + heterogeneity * fed.squares, known = new Map();
    return (m) => {
      if (!known.has(m)) {
        const row = facts(name, fed, { m, heterogeneity, rounds: 1, modelBytes: 1 });
        known.set(m, row.why || row.score == null || row.distinct > m * (1 + TIE) ? null : row.score / strength);
      }
      return known.get(m);
    };
  }
  function savedBy(noise, m, n) {
    const here = noise(m);
    if (here === null) return null;
    let there = m < n ? noise(Math.min(n, 2 * m)) : here;
    if (there === null) there = here / 2;
    return (here - there) / (1 + here);
  }
  function leastM(noise, n) {
    const values = new Set([n]);
    for (let e = 0; e < 9; e++) for (const s of STEPS) if (s * 10 ** e <= n) values.add(Math.floor(s * 10 ** e));
    const sorted = [...values].sort((a, b) => a - b);
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1, saved = savedBy(noise, sorted[middle], n);
      if (saved !== null && saved < SAVES) high = middle; else low = middle + 1;
    }
    return low < sorted.length ? sorted[low] : null;
  }

  /* How many clients a round: the recommended m and its neighbours, for the same progress. */
  function whichM(name, fed, given) {
    const noise = noiseOf(name, fed, given.heterogeneity), n = fed.n, now = noise(given.m);
    if (now === null) return null;
    const best = leastM(noise, n);
    const near = best === null ? [given.m, 1, n] : [given.m, Math.max(1, Math.floor(best / 2)), best, Math.min(n, 2 * best), n];
    const rows = [...new Set(near)].filter((m) => m <= Math.max(given.m, n)).sort((a, b) => a - b).map((m) => {
      const here = noise(m), saved = savedBy(noise, m, n);
      if (here === null || saved === null) return null;
      const rounds = given.rounds * (1 + here) / (1 + now);
      const row = facts(name, fed, { ...given, m, rounds: Math.max(1, Math.ceil(rounds - 1e-9)) });
      return { m, noise: here, rounds, saved, trainings: row.distinct * rounds, bytesTotal: row.bytesTotal };
    }).filter((row) => row);
    return { recommended: best, rows, ifUnlike: leastM(noiseOf(name, fed, 10 * given.heterogeneity), n) };
  }

  /* As Python writes numbers: halves to the even neighbour, thousands apart. */
  function whole(value) {
    const floor = Math.floor(value), half = value - floor === 0.5;
    const rounded = half ? floor + (floor % 2) : Math.round(value);
    return String(rounded).replace(/\B(?=(\d{3})+$)/g, ",");
  }
  const counted = (value, thing) => `${whole(value)} ${thing}${whole(value) === "1" ? "" : "s"}`;
  const percent = (share) => `${whole(share * 100)}%`;
  function short(value, digits = 3) {
    if (value === 0) return "0";
    const power = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))));
    if (power < -4 || power >= digits) return value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace(/e([+-])(\d)$/, "e$10$2");
    const text = value.toPrecision(digits);
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  }
  function inBytes(value) {
    for (const unit of ["B", "kB", "MB", "GB"]) {
      if (value < 999.5) return `${short(value)} ${unit}`;
      value /= 1000;
    }
    return `${short(value)} TB`;
  }

  const epsilon = (cost) => (Number.isFinite(cost) ? short(cost) : `above ${root.LARGEST}`);

  /* What the noise costs, and who would do it for less; prices are those that are known so far, by name. */
  function privately(row, able, prices) {
    if (!prices) return "";
    const text = "; with this noise the run costs its worst-off client epsilon ";
    if (!able.every((each) => each.name in prices)) return `${text}…`;
    const other = able.reduce((least, each) => (prices[each.name] < prices[least.name] ? each : least));
    const much = prices[other.name] < CHEAPER * prices[row.name];
    return `${text}${epsilon(prices[row.name])}${much ? ` (${other.name}: ${epsilon(prices[other.name])})` : ""}`;
  }

  /* What it does, what it costs, what the server learns; with prices, what noise costs. */
  function threeSentences({ rows, best }, fed, given, words, prices) {
    if (!best) return [];
    const row = rows.find((each) => each.name === best), able = rows.filter((each) => eligible(each, given.m));
    const { n } = fed, all = row.distinct >= n * (1 - 1e-9);
    const who = n === 1 ? "the only client" : all && n === 2 ? "both clients" : all ? `all ${whole(n)} clients` : `about ${whole(row.distinct)} of the ${whole(n)} clients`;
    const others = able.length - 1;
    const least = others > 1 ? `; none of ${others} other schemes that do so leaves less to chance`
      : others === 1 ? "; the one other scheme that does so leaves no less to chance" : "";
    const rounds = given.rounds === 1 ? "One round means" : `${whole(given.rounds)} rounds mean`;
    const seen = row.neverWorst < RARELY ? "every client is all but certain to take part at least once"
      : `the least likely client has a chance of ${percent(row.neverWorst)} never to take part`;
    const twice = row.twice ? " (a client drawn twice must be sent its weight)" : "";
    return [
      `Every round it takes ${who}, and over the rounds each counts for exactly its share${least}.`,
      `${rounds} about ${counted(row.distinct * given.rounds, "training")} by clients and ${inBytes(row.bytesTotal)} sent in all, both ways together; ${seen}.`,
      `${words[best].learns}; ${words[best].secure}${twice}${privately(row, able, prices)}.`,
    ];
  }

  function aboutM(found, given) {
    const asked = found && found.rows.find((row) => row.m === given.m);
    if (!asked || found.recommended === null) return [];
    const best = found.recommended, at = found.rows.find((row) => row.m === best);
    const head = best === given.m ? `m = ${given.m} is about right` : best < given.m ? `Fewer would do: m = ${best}` : `More would help: m = ${best}`;
    const said = (best === given.m ? [asked] : [at, asked]).map((row) => `m = ${row.m} needs ${counted(row.rounds, "round")} and ${inBytes(row.bytesTotal)}`);
    const out = [`${head}. For the same progress ${said.join(", ")}.`,
      `From m = ${best} on returns diminish: twice as many clients would save ${percent(at.saved)} of the rounds (the rule: less than 10%).`];
    if (found.ifUnlike !== null && found.ifUnlike !== best) out.push(`If clients differ ten times as much as assumed, it is m = ${found.ifUnlike}.`);
    return out;
  }

  /* Everything at once: { rows, best, plain, aboutM, whichM }; words are those of the library for each scheme. */
  function advise(fed, given, words, prices) {
    const rows = root.NAMES.map((name) => facts(name, fed, given));
    const rank = (row) => (row.why ? 2 : row.score === null ? 1 : 0);
    rows.sort((a, b) => rank(a) - rank(b) || (a.score || 0) - (b.score || 0) || (a.name < b.name ? -1 : 1));
    const found = chosen(rows, given.m), best = found && found.name, which = found && whichM(best, fed, given);
    return { rows, best, whichM: which, aboutM: aboutM(which, given),
      plain: threeSentences({ rows, best }, fed, given, words, prices) };
  }

  Object.assign(root, { facts, advise, threeSentences, epsilon, short, inBytes, whole, counted, percent });
})(window.Explorer = window.Explorer || {});
