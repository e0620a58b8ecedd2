const layer = data.layers[state.layer], heads = layer.weights.length, n = data.cards.length;
if (state.of !== state.layer) { state.off = []; state.of = state.layer; }
if (state.all !== state.allSeen) {
  if (state.all) state.off = state.off.length ? [] : layer.weights.map((_, h) => h);
  state.allSeen = state.all;
}
const asker = state.card - 1, on = (h) => !state.off.includes(h);

// the layer's answer: a constant and one term for each head that is switched on
const chances = (card, question) => ui.softmax(layer.constant[question].map((start, option) =>
  layer.scores.reduce((sum, head, h) =>
    sum + (on(h) ? head[card][question][option] : 0), start)));
const best = (row) => row.indexOf(Math.max(...row));
const correct = (card, question) =>
  best(chances(card, question)) === data.right[card][question];

// the switches, one a head
const left = 74, wide = (ui.width - left) / n, top = 60, tall = 192 / heads;
layer.weights.forEach((_, h) => {
  const y = top + h * tall + tall / 2;
  ui.rect(2, y - 7, 14, 14, { fill: on(h) ? "blue" : "surface", stroke: "muted", rx: 3 });
  if (on(h)) ui.curve([[5, y], [8, y + 3], [13, y - 4]], { stroke: "surface" });
  ui.text(22, y + 4.5, `head ${h + 1}`, { fill: on(h) ? "ink" : "muted" });
  const handle = ui.rect(0, y - 12, left - 6, 24, { fill: "transparent" });
  ui.active(handle, { key: `head-${h}`,
    label: `head ${h + 1}, ${on(h) ? "on" : "off"}; press to switch`,
    press: () => { state.off = on(h) ? [...state.off, h] : state.off.filter((o) => o !== h); } });
});

// the cards, and the weights of the card that asks
const wanted = data.cards.map((_, j) => [j === asker - 1 && "1",
  j !== asker && data.cards[j][0] === data.cards[asker][0] && "2"].filter(Boolean).join(" "));
data.cards.forEach(([colour, letter], j) => {
  const x = left + j * wide;
  ui.text(x + wide / 2, 13, j === asker ? "?" : wanted[j],
    { "text-anchor": "middle", "font-weight": 650 });
  ui.rect(x + 1.5, 20, wide - 3, 28, { fill: colour, rx: 4 });
  if (j === asker) ui.rect(x - 0.5, 17, wide + 1, 34,
    { fill: "none", stroke: "ink", "stroke-width": 2.5, rx: 6 });
  ui.text(x + wide / 2, 39, letter,
    { "text-anchor": "middle", "font-weight": 650, fill: "surface" });
  layer.weights.forEach((head, h) => {
    const base = top + (h + 1) * tall - 3, high = (tall - 7) * head[asker][j];
    ui.line(x + 2, base, x + wide - 2, base, { stroke: "grid" });
    ui.rect(x + 2, base - high, wide - 4, high, { fill: on(h) ? "blue" : "grid" });
  });
  const column = ui.rect(x, 0, wide, top + 192, { fill: "transparent" });
  column.style.cursor = "pointer";
  column.addEventListener("click", () => ui.set("card", j + 1));
});

// the answers
const half = ui.width / data.questions.length, said = [];
data.questions.forEach((question, q) => {
  const x = q * half + 6, w = half - 16, row = chances(asker, q), right = data.right[asker][q];
  const choice = best(row), step = w / row.length, base = 362;
  const verdict = right < 0 ? "nothing to find" : choice === right ? "right" : "wrong";
  ui.text(x, 282, `${q + 1} ${question}: ${right < 0 ? "–" : data.options[choice]}`
    + (right < 0 ? "" : choice === right ? " ✓" : " ✗"), { "font-weight": 650 });
  ui.line(x, base, x + w, base, { stroke: "muted" });
  row.forEach((chance, option) => {
    const high = 70 * chance, wrong = option !== right;
    ui.rect(x + (option + 0.14) * step, base - high, 0.72 * step, high,
      { fill: wrong ? "orange" : "green" });
    if (!wrong) ui.rect(x + (option + 0.04) * step, base + 3, 0.92 * step, 18,
      { fill: "none", stroke: "green", "stroke-width": 2, rx: 4 });
    ui.text(x + (option + 0.5) * step, base + 17, data.options[option],
      { "text-anchor": "middle" });
  });
  const cards = data.cards.map((_, card) => card).filter((card) => data.right[card][q] >= 0);
  const good = cards.filter((card) => correct(card, q)).length;
  said.push({ verdict, choice, text: `${question}: ${good} of ${cards.length}` });
});
const active = layer.weights.map((_, h) => h + 1).filter((h) => on(h - 1));
const list = active.length === heads ? "all heads on" : active.length === 0 ? "all heads off"
  : `only head${active.length > 1 ? "s" : ""} ${active.join(", ")} on`;
ui.say(`Card ${state.card}, ${data.cards[asker].join(" ")}, ${list}. `
  + said.map(({ verdict, choice }, q) => verdict === "nothing to find"
    ? `There is no card for “${data.questions[q]}”`
    : `It names ${data.options[choice]} for “${data.questions[q]}” (${verdict})`).join(". ")
  + `. Right over the whole row: ${said.map((s) => s.text).join(", ")}.`);
