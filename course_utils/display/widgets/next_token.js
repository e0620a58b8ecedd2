const scores = data.scores[state.beginning], n = scores.length;
const order = scores.map((_, i) => i).sort((a, b) => scores[b] - scores[a]);
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

// temperature, then the k most probable, then the fewest that reach p
const heated = ui.softmax(scores.map((score) => score / state.heat));
const room = sum(order.slice(0, state.k).map((i) => heated[i]));
let before = 0;
const kept = Array(n).fill(false);
order.slice(0, state.k).forEach((i) => {
  kept[i] = state.p === 1 || before < state.p - 1e-9;
  before += heated[i] / room;
});
const left = sum(heated.filter((_, i) => kept[i]));
const final = heated.map((p, i) => kept[i] ? p / left : 0);
const count = kept.filter(Boolean).length;

// draws: the token whose exponential clock, of rate p, rings first
const settings = [state.beginning, state.heat, state.k, state.p].join("|");
if (state.seen !== settings) {
  state.seen = settings;
  state.drawn = [];
  state.drawSeen = state.draw;
}
if (state.draw > state.drawSeen) {
  const normal = ui.normals(1000 * state.draw + Math.round(10 * state.heat) + state.k);
  for (let i = 0; i < 20; i++) {
    const rings = order.map((token) => final[token] > 0
      ? (normal() ** 2 + normal() ** 2) / final[token] : Infinity);
    state.drawn.push(order[rings.indexOf(Math.min(...rings))]);
  }
  state.drawSeen = state.draw;
}
const times = (i) => state.drawn.filter((token) => token === i).length;

const x = 92, w = ui.width - x - 62, top = 26;
ui.text(0, 14, "token", { fill: "muted" });
ui.text(x, 14, state.drawn.length ? `probability; drawn of ${state.drawn.length}`
  : "probability (frame: before)", { fill: "muted" });
const plain = ui.softmax(scores);
const bar = (row, label, now, was, cut, drawn) => {
  const y = top + row * data.row;
  ui.text(x - 8, y + 14, label, { "text-anchor": "end", fill: cut ? "grey" : "ink" });
  ui.rect(x, y + 2, w * now, data.row - 8, { fill: "blue" });
  ui.rect(x, y + 2, w * was, data.row - 8, { fill: "none", stroke: "muted" });
  const number = cut ? "cut" : now.toFixed(2);
  ui.text(ui.width, y + 14, state.drawn.length ? `${number}; ${drawn}` : number,
    { "text-anchor": "end", fill: cut ? "grey" : "ink" });
};
const shown = order.slice(0, data.rows), others = order.slice(data.rows);
shown.forEach((i, row) =>
  bar(row, data.pieces[i].slice(0, 11), final[i], plain[i], !kept[i], times(i)));
const rest = sum(others.map((i) => final[i]));
bar(data.rows, `${others.length} more`, rest, sum(others.map((i) => plain[i])),
  !others.some((i) => kept[i]), sum(others.map(times)));

const first = order[0];
ui.say(`After “${state.beginning}” ${count} of ${n} tokens may come. They held `
  + `${left.toFixed(2)} of the probability at temperature ${state.heat}. The likeliest, `
  + `“${data.pieces[first]}”, is now drawn with probability ${final[first].toFixed(2)}`
  + `${state.heat === 1 && count === n ? "" : `, before it was ${plain[first].toFixed(2)}`}. `
  + (state.drawn.length ? `The last 20 draws brought `
    + `${new Set(state.drawn.slice(-20)).size} different tokens.`
    : count === 1 ? "Nothing is left to chance." : "Nothing has been drawn yet."));
