const labels = Object.keys(data.weights);
const weights = data.weights[state.which || labels[0]], row = weights[state.query];
ui.tokens(data.keys, row);
const room = 12 + 8.5 * Math.max(...data.queries.map((label) => label.length));
const x = Math.min(room, 0.3 * ui.width), h = 26 * data.queries.length;
const w = Math.min(ui.width - x - 4, 60 * data.keys.length);
ui.heatmap(weights, { x, y: 2, w, h, rows: data.queries, columns: data.keys });
ui.rect(x, 2 + 26 * state.query, w, 26,
  { fill: "none", stroke: "orange", "stroke-width": 3 });
data.queries.forEach((label, i) => {
  const line = ui.rect(0, 2 + 26 * i, x + w, 26, { fill: "transparent" });
  line.style.cursor = "pointer";
  line.addEventListener("click", () => ui.set("query", i));
  line.addEventListener("pointerenter", () => {
    if (i !== state.query) ui.set("query", i);
  });
});
const order = row.map((weight, j) => j).sort((a, b) => row[b] - row[a]);
const named = (j) => `“${data.keys[j]}” (${row[j].toFixed(2)})`;
ui.say(`${state.which ? state.which + ": " : ""}“${data.queries[state.query]}” looks most `
  + `at ${named(order[0])}`
  + (order.length > 1 ? `, then at ${named(order[1])}.` : "."));
