const n = data.n, w = data.w, d = 2 * w.length, pair = state.f >> 1;
const entry = (t, f) => f % 2 ? Math.cos(t * w[f >> 1]) : Math.sin(t * w[f >> 1]);
const narrow = ui.width < 480, muted = { fill: "muted" };

// left: the matrix, positions downwards; a row and a column are framed
const top = 22, high = 224, left = 30, wide = (narrow ? 0.5 : 0.52) * ui.width - left;
const row = high / n, column = wide / d;
ui.text(0, 12, narrow ? "matrix" : "the matrix P", { "font-weight": 600 });
// all cells of one shade are one path: forty elements in place of a thousand
const shades = {};
for (let t = 0; t < n; t++) for (let f = 0; f < d; f++) {
  const shade = Math.round(20 * entry(t, f));
  const cell = `M${left + f * column} ${top + t * row}h${column + 0.3}v${row + 0.3}`
    + `h${-column - 0.3}z`;
  shades[shade] = (shades[shade] || "") + cell;
}
for (const shade in shades) ui.path(shades[shade],
  { fill: shade < 0 ? "orange" : "blue", "fill-opacity": Math.abs(shade) / 20 });
const frame = { fill: "none", stroke: "ink", "stroke-width": 2 };
ui.rect(left - 1, top + state.t * row - 1, wide + 2, row + 2, frame);
ui.rect(left + state.f * column - 1, top - 1, column + 2, high + 2, frame);
const label = (t, bold) => ui.text(left - 6, top + (t + 0.5) * row + 4, t,
  { "text-anchor": "end", fill: bold ? "ink" : "muted", "font-weight": bold ? 650 : 400 });
[0, n - 1].filter((t) => Math.abs(t - state.t) * row > 14).forEach((t) => label(t, false));
label(state.t, true);
ui.text(left + (state.f + 0.5) * column, top + high + 15, state.f,
  { "text-anchor": "middle", "font-weight": 650 });

// right: the framed column as a wave along the positions, the framed row as a dot on it
const from = left + wide + (narrow ? 18 : 40), across = ui.width - from - 8;
const middle = top + high / 2, swing = high / 2 - 14;
ui.text(from, 12, `dimension ${state.f}`, { "font-weight": 600 });
ui.line(from, middle, from + across, middle, { stroke: "muted" });
const at = (t) => [from + across * t / (n - 1), middle - swing * entry(t, state.f)];
const fine = Array.from({ length: 4 * n - 3 }, (_, i) => at(i / 4));
ui.curve(fine, { stroke: "blue", "stroke-opacity": 0.5 });
for (let t = 0; t < n; t++) ui.circle(...at(t), 2, { fill: "blue" });
ui.circle(...at(state.t), 6, { fill: "orange" });
ui.text(from, top + high + 15, 0, muted);
ui.text(from + across, top + high + 15, narrow ? n - 1 : `position ${n - 1}`,
  { ...muted, "text-anchor": "end" });

// below: the dot product of two rows against their distance
const used = state.pairs === "this pair only" ? [w[pair]] : w;
const dot = (k) => used.reduce((sum, each) => sum + Math.cos(k * each), 0);
const base = 404, tall = 96, half = n >> 1, most = used.length;
const least = Math.min(...Array.from({ length: half }, (_, k) => dot(k)), 0);
const place = (k) => [left + (ui.width - left - 8) * (k + half - 1) / (2 * half - 2),
  base - tall * (dot(k) - least) / (most - least)];
ui.text(0, base - tall - 22, narrow ? "dot product by distance"
  : "dot product of two rows, by their distance", { "font-weight": 600 });
ui.line(left, base - tall, ui.width - 8, base - tall);
ui.line(left, base, ui.width - 8, base);
[[most, base - tall], [least, base]].forEach(([value, y]) =>
  ui.text(left - 6, y + 4, `${Math.round(value)}`.replace("-", "\u2212"),
    { ...muted, "text-anchor": "end" }));
ui.line(place(0)[0], base, place(0)[0], base - tall);
ui.curve(Array.from({ length: 8 * half - 7 }, (_, i) => place(i / 4 + 1 - half)),
  { stroke: "green" });
ui.circle(...place(-state.k), 5, { fill: "none", stroke: "muted", "stroke-width": 2 });
ui.circle(...place(state.k), 6, { fill: "orange" });
ui.text(left, base + 18, `\u2212${half - 1}`, muted);
ui.text(place(0)[0], base + 18, "0", { ...muted, "text-anchor": "middle" });
ui.text(ui.width - 8, base + 18, `${half - 1}`, { ...muted, "text-anchor": "end" });

// in words
const length = 2 * Math.PI / w[pair];
ui.say(`Position ${state.t}, dimension ${state.f}: the `
  + `${state.f % 2 ? "cosine" : "sine"} of ${state.t} × ${w[pair].toPrecision(3)} is `
  + `${entry(state.t, state.f).toFixed(2)}; this wave repeats after `
  + `${length < 100 ? length.toFixed(1) : Math.round(length)} positions. `
  + (used.length > 1 ? "With all pairs" : `With pair ${pair} alone`)
  + `, two rows ${Math.abs(state.k)} apart have the dot product ${dot(state.k).toFixed(2)} `
  + `of at most ${most}, wherever they stand and whichever comes first.`);
