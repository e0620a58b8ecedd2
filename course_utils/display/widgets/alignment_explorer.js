// Target words on the left, source words on the right, weights as lines between them.
const index = Math.max(0,
  data.sentences.findIndex((s) => s.label === state.sentence));
const sentence = data.sentences[index], n = sentence.target.length;
const weights = sentence.weights[data.stages.indexOf(state.steps)];
const source = [...sentence.source];
if (weights[0].length > source.length) source.push("(end)");
if (state.shown !== index) {  // another sentence: begin with all of its words
  state.shown = index;
  state.word = -1;
}
const isSure = (j, t) => sentence.sure.some(([a, b]) => a === j && b === t);
const isPossible = (j, t) => sentence.possible.some(([a, b]) => a === j && b === t);
const allowed = (j, t) => isSure(j, t) || isPossible(j, t);
const best = (row) => row.indexOf(Math.max(...row));

const row = data.row, top = 26, tall = row - 6, wide = Math.min(ui.width, 520);
const y = (i) => top + i * row, middle = (i) => y(i) + tall / 2;
const left = 0.35 * wide, right = wide - left;
ui.text(left, 15, "French", { "text-anchor": "end", "font-weight": 600 });
ui.text(right, 15, "English", { "font-weight": 600 });

// the grammar's links below, the weights above them
const rows = state.word < 0 ? sentence.target.map((_, t) => t) : [state.word];
if (state.gold) rows.forEach((t) => source.forEach((_, j) => {
  if (allowed(j, t)) ui.line(left + 4, middle(t), right - 4, middle(j), {
    stroke: "orange", "stroke-width": 9, "stroke-opacity": 0.4,
    "stroke-dasharray": isSure(j, t) ? undefined : "5 5" });
}));
rows.forEach((t) => weights[t].forEach((weight, j) => {
  if (weight >= 0.02) ui.line(left + 4, middle(t), right - 4, middle(j),
    { stroke: "blue", "stroke-width": 0.5 + 5 * weight, "stroke-opacity": 0.25 + 0.75 * weight });
}));

sentence.target.forEach((word, t) => {
  const chosen = t === state.word;
  ui.rect(0, y(t), left, tall, { fill: chosen ? "blue" : "grid", rx: 5,
    "fill-opacity": chosen ? 1 : 0.5 });
  ui.text(left - 8, middle(t) + 4, word, { "text-anchor": "end",
    fill: chosen ? "surface" : "ink", "font-weight": chosen ? 650 : 400 });
  const press = ui.rect(0, y(t), left, tall, { fill: "transparent", stroke: "muted", rx: 5 });
  ui.active(press, { key: `word-${t}`, label: `${word}, word ${t + 1} of ${n}`,
    press: () => { state.word = chosen ? -1 : t; } });
});
source.forEach((word, j) => {
  const weight = state.word < 0 ? 0 : weights[state.word][j];
  ui.rect(right, y(j), left, tall, { "fill-opacity": weight, rx: 5 });
  ui.text(right + 8, middle(j) + 4, word, { ...ui.on(weight),
    "font-style": j === sentence.source.length ? "italic" : "normal" });
  if (weight >= 0.02) ui.text(wide - 6, middle(j) + 4, weight.toFixed(2),
    { "text-anchor": "end", ...ui.on(weight) });
});

// in words
const quoted = (j) => `“${source[j]}”`;
if (state.word < 0) {
  const right = weights.filter((line, t) => allowed(best(line), t)).length;
  ui.say(`After ${state.steps} steps, all ${n} words at once: ${right} of them look most at a `
    + "word that the grammar links to them. Choose a word to see its row alone.");
} else {
  const line = weights[state.word];
  const order = line.map((_, j) => j).sort((a, b) => line[b] - line[a]);
  const gold = source.map((_, j) => j).filter((j) => allowed(j, state.word));
  ui.say(`After ${state.steps} steps “${sentence.target[state.word]}” looks most at `
    + `${quoted(order[0])} (${line[order[0]].toFixed(2)})`
    + (order.length > 1 ? `, then at ${quoted(order[1])} (${line[order[1]].toFixed(2)}). ` : ". ")
    + (state.gold ? (gold.length
      ? `The grammar links it to ${gold.map(quoted).join(" and ")}.`
      : "The grammar links it to no word.") : "Press it again for all words."));
}
