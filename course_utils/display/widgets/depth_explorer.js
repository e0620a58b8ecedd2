const which = data.shown.indexOf(state.shown);
const series = (kind) => data.profiles[`${kind}/${state.depth}/${state.gain}`][which];
const mine = series(state.kind), n = mine.length;

// a logarithmic axis that does not move, so that every change is seen; what lies
// beyond it is drawn at its edge
const [low, high] = which === 2 ? [-16, 0] : [-8, 8];
const left = 44, right = ui.width - 8, top = 34, bottom = ui.height - 40;
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
const first = which === 0 ? "first layer" : "input", last = which === 0 ? "last layer"
  : `after layer ${n - 1}`;
ui.text(left, bottom + 18, first, { fill: "muted" });
ui.text(right, bottom + 18, last, { "text-anchor": "end", fill: "muted" });
ui.text(right, ui.height - 2, "grey: the other wirings", { "text-anchor": "end",
  fill: "muted" });

data.kinds.filter((kind) => kind !== state.kind).forEach((kind) => ui.curve(
  series(kind).map((power, i) => [place(i), level(power)]),
  { stroke: "grey", "stroke-opacity": 0.45, "stroke-width": 1.5 }));
const end = which === 0 ? mine[0] : mine[n - 1];
const bad = which === 2 ? end < -1 : end < -2 || end > 2;
const colour = bad ? "orange" : "green";
ui.curve(mine.map((power, i) => [place(i), level(power)]),
  { stroke: colour, "stroke-width": 3 });
mine.forEach((power, i) => ui.circle(place(i), level(power), n > 13 ? 3 : 4.5,
  { fill: colour }));

// in words
const number = (power) => power > -2 && power < 3 ? (10 ** power).toPrecision(2) * 1
  : `${(10 ** (power - Math.floor(power))).toFixed(0)} · ${name(Math.floor(power))}`;
const verdict = [
  end < -2 ? "It vanishes: the first layer hears nothing of the loss."
    : end > 2 ? "It explodes." : "The first layer hears the loss.",
  end < -2 ? "The stream dies out." : end > 2 ? "The stream explodes."
    : "The stream keeps a reasonable size.",
  end < -6 ? "All tokens have become the same vector: nothing is left to sort."
    : end < -1 ? "The tokens have become nearly alike." : "The tokens are still different.",
][which];
ui.say(`${state.kind}, ${state.depth} layers, gain ${state.gain}: ` + [
  `the gradient is ${number(mine[0])} in the first layer and ${number(mine[n - 1])} in the `
    + "last. ",
  `the stream's size goes from ${number(mine[0])} to ${number(mine[n - 1])}. `,
  "the tokens of a sentence differ from their mean by a share of "
    + `${number(mine[0])} at the input and ${number(mine[n - 1])} at the end. `,
][which] + verdict);
