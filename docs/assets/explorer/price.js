/* What a run costs in privacy: epsilon of the worst-off client where noise is added to the sum and
   nobody learns who took part. The bounds of fedcohort.privacy._accounting, composed as privacy
   loss distributions (connect-the-dots, one Fourier transform). See docs/privacy.md. */
(function (root) {
  "use strict";

  const POINTS = 4000; // of the grid of one round
  const MOST = 1 << 17; // of the grid of all rounds; a coarser grid is dearer, never cheaper
  const LARGEST = 600, TAIL = 9.5, UNLIKELY = 1e-18, OUTSIDE = 1e-14, GROUPS = 8;

  const nothing = (loss) => -Math.expm1(Math.min(loss, 0));

  /* H_a(N(distance, 1), N(0, 1)) at a = e^loss. */
  function gaussian(distance, loss) {
    if (distance <= 0) return nothing(loss);
    const half = distance / 2;
    const away = Math.exp(loss + root.logNormal(-half - loss / distance));
    return Math.max(Math.min(1, Math.max(0, root.normal(half - loss / distance) - away)), nothing(loss));
  }

  const widest = (distance) => distance ** 2 / 2 + TAIL * distance;

  /* The loss at which a profile falls to delta. */
  function crossing(profile, high, delta) {
    let low = 0;
    if (profile(0) <= delta) return 0;
    for (let step = 0; step < 100 && high - low > 1e-10; step++) {
      const middle = (low + high) / 2;
      if (profile(middle) > delta) low = middle; else high = middle;
    }
    return high;
  }
  const unamplified = (rounds, noise, delta) => {
    const distance = Math.sqrt(rounds) / noise;
    return crossing((loss) => gaussian(distance, loss), widest(distance), delta);
  };

  function drawn(chances, distance, loss) {
    let total = 0;
    chances.forEach((chance, k) => { if (chance > 0) total += chance * gaussian((k + 1) * distance, loss); });
    return total;
  }
  const amplified = (part, distance, loss) => drawn(part.chances, distance, Math.log1p(Math.expm1(loss) / Math.min(1, part.q)));
  function mixtureSecond(q, distance, loss) {
    const left = 1 - Math.exp(loss) * (1 - q);
    return left > 0 ? left * gaussian(distance, loss + Math.log(q / left)) : 0;
  }

  /* Profiles of one round on a grid of losses -most .. most, for both orders of the neighbours. */
  function profiles(part, most, step) {
    const { chances, q, weight, displaced } = part, alone = displaced === 0 && chances.length === 1;
    const there = (loss) => amplified(part, weight + displaced, loss);
    const gone = (loss) => (alone ? mixtureSecond(q, weight, loss) : amplified(part, Math.max(weight, displaced), loss));
    const length = 2 * most + 1, out = [new Float64Array(length), new Float64Array(length)];
    for (let k = 0; k < length; k++) {
      const loss = (k - most) * step;
      const seen = drawn(chances, weight, loss) + (1 - q) * nothing(loss);
      const turned = (f) => nothing(loss) + Math.exp(loss) * f(-loss);
      if (displaced === Infinity) { out[0][k] = out[1][k] = Math.min(1, seen + UNLIKELY); continue; }
      const hidden = loss >= 0 ? [there(loss), gone(loss)] : [turned(gone), turned(there)];
      hidden.forEach((h, order) => { out[order][k] = Math.min(1, Math.min(seen, h) + UNLIKELY); });
    }
    return out;
  }

  /* Masses on the grid whose profile is nowhere below the given one: its convex hull, dot to dot. */
  function connected(profile, most, step) {
    const point = (k) => (k < 0 ? 0 : Math.exp((k - most) * step)), value = (k) => (k < 0 ? 1 : profile[k]);
    const slope = (a, b) => (value(b) - value(a)) / (point(b) - point(a));
    const kept = [-1];
    for (let k = 0; k < profile.length; k++) {
      while (kept.length > 1 && slope(kept[kept.length - 2], kept[kept.length - 1]) >= slope(kept[kept.length - 1], k)) kept.pop();
      kept.push(k);
    }
    const masses = new Float64Array(profile.length);
    for (let i = 1; i < kept.length; i++) {
      const after = i + 1 < kept.length ? slope(kept[i], kept[i + 1]) : 0;
      masses[kept[i]] = point(kept[i]) * Math.max(0, after - slope(kept[i - 1], kept[i]));
    }
    return { masses, infinite: profile[profile.length - 1] };
  }

  /* Losses between which all but a negligible part of the sum of so many rounds lies (Chernoff). */
  function reach(masses, most, step, rounds) {
    const log = (lambda) => {
      let total = 0;
      for (let k = 0; k < masses.length; k++) if (masses[k] > 0) total += masses[k] * Math.exp(lambda * (k - most) * step);
      return Math.log(total);
    };
    const bound = (sign) => {
      let best = rounds * most * step;
      for (let power = -12; power <= 12; power++) {
        const lambda = 2 ** (power / 2), found = (rounds * log(sign * lambda) - Math.log(OUTSIDE)) / lambda;
        if (Number.isFinite(found)) best = Math.min(best, found);
      }
      return best;
    };
    return [-bound(-1), bound(1)];
  }

  /* Epsilon of one order of the neighbours after so many rounds; Infinity where the grid is too coarse for delta. */
  function composed({ masses, infinite }, most, step, rounds, delta) {
    const [low, high] = reach(masses, most, step, rounds);
    const first = Math.floor(low / step), wanted = Math.ceil(high / step) - first + 1;
    let n = 2;
    while (n < wanted) n *= 2;
    if (n > MOST) return null;
    const re = new Float64Array(n), im = new Float64Array(n);
    masses.forEach((mass, k) => { re[(((k - most) % n) + n) % n] += mass; });
    root.fourier(re, im, false);
    for (let k = 0; k < n; k++) {
      const length = Math.hypot(re[k], im[k]) ** rounds, angle = Math.atan2(im[k], re[k]) * rounds;
      re[k] = length * Math.cos(angle); im[k] = length * Math.sin(angle);
    }
    root.fourier(re, im, true);
    const lost = -Math.expm1(rounds * Math.log1p(-Math.min(infinite, 1 - 1e-16))) + OUTSIDE;
    const mass = (loss) => Math.max(0, re[((loss % n) + n) % n]) / n;
    let tail = lost, nearer = 0; // sums over losses above: mass, and mass e^(this loss - its own)
    if (tail > delta) return Infinity;
    for (let loss = first + n - 1; loss > 0; loss--) {
      const here = mass(loss);
      tail += here;
      nearer = nearer * Math.exp(-step) + here;
      if (tail - nearer * Math.exp(-step) > delta) return Math.max(0, loss * step + Math.log((tail - delta) / nearer));
    }
    return 0;
  }

  function ofPart(part, rounds, delta) {
    if (part.q <= 0) return 0;
    const farthest = part.weight + (part.displaced === Infinity ? 0 : part.displaced);
    const range = Math.min(LARGEST, Math.max(...part.chances.map((c, k) => (c > 0 ? widest((k + 1) * farthest) : 0))));
    for (let step = 2 * range / POINTS; step < range; step *= 2) {
      const most = Math.ceil(range / step);
      const found = profiles(part, most, step).map((each) => composed(connected(each, most, step), most, step, rounds, delta));
      if (!found.includes(null)) return Math.max(...found);
    }
    return Infinity;
  }

  /* Clients such that nobody is worse off than all of them: as privacy.price takes them. */
  function foremost(law) {
    const seen = new Set(), rows = [];
    for (let i = 0; i < law.weight.length; i++) {
      const row = [law.weight[i], law.displaced[i], ...law.tails.map((tail) => tail[i])];
      const key = row.join();
      if (!seen.has(key)) { seen.add(key); rows.push(row); }
    }
    const before = (a, b) => { for (let k = 0; k < a.length; k++) if (a[k] !== b[k]) return a[k] - b[k]; return 0; };
    rows.sort((a, b) => b[2] - a[2] || before(a, b));
    const kept = [];
    for (const row of rows) if (!kept.some((other) => row.every((value, k) => value <= other[k]))) kept.push(row);
    const groups = Math.min(GROUPS, kept.length), out = [];
    for (let g = 0, start = 0; g < groups; g++) {
      const size = Math.floor(kept.length / groups) + (g < kept.length % groups ? 1 : 0);
      const group = kept.slice(start, start + size);
      start += size;
      out.push(group[0].map((_, k) => Math.max(...group.map((row) => row[k]))));
    }
    return out;
  }

  /* Epsilon of the worst-off client; { epsilon, amplified }. */
  function price(law, rounds, noise, delta) {
    const most = unamplified(rounds, noise, delta);
    if (!law.displaced || !law.tails) return { epsilon: most, amplified: false };
    const largest = law.weight.reduce((a, b) => Math.max(a, b), 0), deviation = noise * largest;
    let worst = 0;
    for (const [weight, displaced, ...tails] of foremost(law)) {
      const some = tails.filter((tail, k) => k === 0 || tail > 0);
      const chances = some.map((tail, k) => tail - (some[k + 1] || 0));
      const part = { chances, q: Math.min(1, root.sum(chances)), weight: weight / deviation, displaced: displaced / deviation };
      const certain = chances.length === 1 && chances[0] >= 1;
      const found = certain ? most : ofPart(part, rounds, delta);
      worst = Math.max(worst, chances.length > 1 ? found : Math.min(found, most));
    }
    return { epsilon: worst, amplified: worst < most * (1 - 1e-9) };
  }

  Object.assign(root, { price, unamplified, LARGEST });
})(window.Explorer = window.Explorer || {});
