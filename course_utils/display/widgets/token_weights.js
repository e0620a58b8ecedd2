const words = data.documents[state.document], rules = Object.keys(data.weights);
const weights = data.weights[state.rule][state.document];
const equal = 1 / words.length, full = 4 * equal;
if (state.of !== state.document) {
  state.of = state.document;
  state.word = weights.indexOf(Math.max(...weights));
}

// the words, line by line, shaded by weight: full colour at four times an equal share
const high = 28, gap = 6;
let x = 0, y = 2;
words.forEach((word, i) => {
  const wide = 8 * word.length + 16;
  if (x > 0 && x + wide > ui.width) { x = 0; y += high + gap; }
  const strength = Math.min(weights[i] / full, 1);
  ui.rect(x, y, wide, high, { rx: 6, "fill-opacity": strength });
  ui.text(x + wide / 2, y + 19, word, { "text-anchor": "middle", ...ui.on(strength) });
  const chosen = i === state.word;
  const frame = ui.rect(x, y, wide, high, { rx: 6, fill: "transparent",
    stroke: chosen ? "orange" : "grid", "stroke-width": chosen ? 3 : 1 });
  ui.active(frame, { key: `word-${i}`, press: () => { state.word = i; },
    label: `${word}, weight ${weights[i].toFixed(2)}` });
  x += wide + gap;
});

// the pressed word by every rule, as multiples of an equal share
y += high + 30;
const left = 12 + 8 * Math.max(...rules.map((rule) => rule.length));
const room = ui.width - left - 56;
const times = rules.map((rule) =>
  data.weights[rule][state.document][state.word] / equal);
const most = Math.max(4, ...times);
ui.text(0, y - 8, `“${words[state.word]}”, as multiples of an equal share:`,
  { "font-weight": 600 });
rules.forEach((rule, i) => {
  const top = y + 28 * i, own = rule === state.rule;
  ui.text(left - 8, top + 17, rule, { "text-anchor": "end",
    "font-weight": own ? 600 : 400 });
  ui.rect(left, top + 3, room * times[i] / most, 20, { fill: own ? "blue" : "grey" });
  ui.text(ui.width - 2, top + 17, `× ${times[i].toFixed(2)}`, { "text-anchor": "end" });
});
ui.line(left + room / most, y, left + room / most, y + 28 * rules.length,
  { stroke: "muted", "stroke-dasharray": "3 3" });

// in words
const order = words.map((word, i) => i).sort((a, b) => weights[b] - weights[a]);
const top = order.slice(0, Math.min(3, words.length));
const share = top.reduce((sum, i) => sum + weights[i], 0);
const even = Math.max(...weights) - Math.min(...weights) < 1e-3;
ui.say(`${state.rule}: ` + (even
  ? `each of the ${words.length} words gets an equal share, ${equal.toFixed(3)}.`
  : `${top.map((i) => `“${words[i]}” (${weights[i].toFixed(2)})`).join(", ")} weigh most; `
    + `these ${top.length} of ${words.length} words hold `
    + `${Math.round(100 * share)} % of the weight.`)
  + ` “${words[state.word]}” has ${weights[state.word].toFixed(3)}.`);
