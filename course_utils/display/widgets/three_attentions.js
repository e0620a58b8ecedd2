const sentence = data.sentences[state.sentence], kind = data.kinds.indexOf(state.kind);
const rows = kind === 0 ? sentence.read : sentence.written;
const columns = kind === 1 ? sentence.written : sentence.read;
const layers = sentence.tables[kind];
state.layer ??= layers.length;
state.head ??= 1;
const table = layers[state.layer - 1][state.head - 1]
  .map((row) => row.map((weight) => weight / 100));
if (state.row === undefined || state.row >= rows.length) state.row = 1;

// all heads, a row of small maps for each layer
const heads = layers[0].length, gap = 8, tall = data.thumb - 26;
const small = Math.min((ui.width - 4 + gap) / heads - gap, 84);
layers.forEach((maps, l) => maps.forEach((map, h) => {
  const x = 2 + h * (small + gap), y = 18 + l * data.thumb;
  const chosen = l + 1 === state.layer && h + 1 === state.head;
  if (h === 0) ui.text(0, y - 6, `layer ${l + 1}`, { "font-weight": 600 });
  ui.rect(x, y, small, tall, { fill: "blue", "fill-opacity": 0.04 });
  map.forEach((row, i) => row.forEach((weight, j) => {
    if (weight >= 5) ui.rect(x + j * small / row.length, y + i * tall / map.length,
      small / row.length, tall / map.length, { fill: "blue", "fill-opacity": weight / 100 });
  }));
  const button = ui.rect(x, y, small, tall, { fill: "transparent",
    stroke: chosen ? "orange" : "muted", "stroke-width": chosen ? 3 : 1 });
  ui.active(button, { key: `head-${l}-${h}`, group: "heads", pressed: chosen,
    label: `layer ${l + 1}, head ${h + 1}: show it large`,
    press: () => { state.layer = l + 1; state.head = h + 1; } });
}));

// the chosen one
const left = Math.min(12 + 8 * Math.max(...rows.map((word) => word.length)), 0.3 * ui.width);
const top = data.thumb * layers.length + 88, wide = Math.min(ui.width - left - 4, 44 * columns.length);
const step = wide / columns.length;
columns.forEach((word, j) => {
  const x = left + (j + 0.5) * step + 4;
  ui.text(x, top - 6, word, { transform: `rotate(-60 ${x} ${top - 6})`,
    "font-weight": table[state.row][j] > 0.2 ? 650 : 400 });
});
rows.forEach((word, i) => {
  const y = top + data.row * i;
  ui.text(left - 6, y + 0.7 * data.row, word,
    { "text-anchor": "end", "font-weight": i === state.row ? 650 : 400 });
  table[i].forEach((weight, j) => ui.rect(left + j * step, y, step - 1, data.row - 1,
    { fill: kind === 1 && j > i ? "grid" : "blue",
      opacity: kind === 1 && j > i ? 0.5 : Math.max(weight, 0.04) }));
});
ui.rect(left - 1, top + data.row * state.row - 1, wide + 1, data.row + 1,
  { fill: "none", stroke: "orange", "stroke-width": 3 });
rows.forEach((word, i) => {
  const line = ui.rect(0, top + data.row * i, left + wide, data.row, { fill: "transparent" });
  ui.active(line, { key: `row-${i}`, group: "rows", pressed: i === state.row, label: `${word}: press to read where it looks`,
    press: () => { state.row = i; } });
});

const row = table[state.row];
const order = row.map((_, j) => j).sort((a, b) => row[b] - row[a]);
const named = (j) => `“${columns[j]}” (${row[j].toFixed(2)})`;
const next = kind > 0 && state.row < rows.length - 1
  ? `, in order to write “${rows[state.row + 1]}”` : "";
ui.say(`${state.kind}, layer ${state.layer}, head ${state.head}: `
  + `“${rows[state.row]}” looks most at ${named(order[0])}`
  + (order.length > 1 && row[order[1]] > 0.005 ? `, then at ${named(order[1])}` : "")
  + `${next}.`);
