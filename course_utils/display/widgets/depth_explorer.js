const which = data.shown.indexOf(state.shown);
const series = (kind) => data.profiles[`${kind}/${state.depth}/${state.gain}`][which];
const n = series(data.kinds[0]).length;

// a logarithmic axis that does not move, so that every change is seen; what lies
// beyond it is drawn at its edge
const [low, high] = which === 2 ? [-16, 0] : [-8, 8];
const left = 44, right = ui.width - 90;
const top = 34, bottom = ui.height - 24;
const place = (i) => left + (right - left) * (n > 1 ? i / (n - 1) : 0.5);
const level = (power) => bottom - (bottom - top)
  * (Math.min(Math.max(power, low), high) - low) / (high - low);
const name = (power) => power === 0 ? "1" : `10${[...`${power}`].map(
  (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"["0123456789".indexOf(c)] || "⁻").join("")}`;
for (let power = low; power <= high; power += 4) {
  ui.line(left, level(power), right, level(power));
  ui.text(left - 6, level(power) + 4, name(power), { "text-anchor": "end", fill: "muted" });
}
ui.text(0, 14, state.shown, { "font-weight": 600 });
const first = which === 0 ? "first layer" : "input";
const last = which === 0 ? "last layer" : `after layer ${n - 1}`;
ui.text(left, bottom + 18, first, { fill: "muted" });
ui.text(right, bottom + 18, last, { "text-anchor": "end", fill: "muted" });

// what counts: the gradient where it arrives last, the stream and the tokens at the end
const found = data.kinds.map((kind) => {
  const powers = series(kind), end = which === 0 ? powers[0] : powers[n - 1];
  const kept = which === 2 ? end >= -1 : end >= -2 && end <= 2;
  return { kind, powers, end, kept };
});
found.forEach(({ powers, kept }) => ui.curve(
  powers.map((power, i) => [place(i), level(power)]),
  { stroke: kept ? "green" : "orange", "stroke-width": 2.5,
    "stroke-dasharray": kept ? undefined : "6 4" }));
// their names at the right end, moved apart where lines meet
const names = found.map((one) => ({ ...one, y: level(one.powers[n - 1]) + 4 }))
  .sort((a, b) => a.y - b.y);
names.forEach((one, i) => { if (i) one.y = Math.max(one.y, names[i - 1].y + 16); });
names.reverse().forEach((one, i) => {
  one.y = Math.min(one.y, i ? names[i - 1].y - 16 : bottom + 4);
});
names.forEach(({ kind, y, kept }) => ui.text(right + 8, y, kind,
  { fill: kept ? "green" : "orange", "font-weight": 600 }));

// in words
const number = (power) => power > -2 && power < 3 ? (10 ** power).toPrecision(2) * 1
  : `${(10 ** (power - Math.floor(power))).toFixed(0)}\u00a0·\u00a0${name(Math.floor(power))}`;
const listed = (kept) => found.filter((one) => one.kept === kept)
  .map(({ kind, end }) => `${kind} (${number(end)})`).join(", ") || "none of them";
ui.say(`${state.depth} layers, gain ${state.gain}. ` + [
  `The gradient in the first layer is of ordinary size, between 0.01 and 100, with `
    + `${listed(true)}; it is not with ${listed(false)}.`,
  `After the last layer the stream has an ordinary size, between 0.01 and 100, with `
    + `${listed(true)}; it has not with ${listed(false)}.`,
  `After the last layer the tokens still differ from their mean by a tenth of their `
    + `length or more with ${listed(true)}; they are nearly alike with ${listed(false)}.`,
][which]);
