const scene = data.scenes[state.scene], n = scene.places.length;
if (state.object === undefined || state.object >= n) state.object = 0;
const at = state.object + n * data.kinds.indexOf(state.kind);
const word = state.word === "first word" ? 0 : 1;
const weights = scene.maps[at][word].map((weight) => weight / 100);
const room = Math.min(ui.width, 288), cell = room / 3, pixel = cell / 8;
const left = (ui.width - room) / 2, top = 44;
const corner = (place) => [left + (place % 3) * cell, top + Math.floor(place / 3) * cell];

const question = scene.questions[at];
ui.text(ui.width / 2, 14, `${question.join(" ")}?`,
  { "text-anchor": "middle", "font-weight": 600 });
ui.text(ui.width / 2, 34, `it answers: ${scene.answers[at]}`, { "text-anchor": "middle" });

ui.rect(left, top, room, room, { fill: "#000" });
scene.places.forEach((place, i) => {
  const [x, y] = corner(place);
  scene.pixels[i].forEach((value, j) => {
    if (value) ui.rect(x + (j % 8) * pixel, y + Math.floor(j / 8) * pixel, pixel, pixel,
      { fill: scene.paint[i], "fill-opacity": value / 9 });
  });
});
weights.forEach((weight, place) => {
  const [x, y] = corner(place);
  ui.rect(x, y, cell, cell, { fill: "#000", "fill-opacity": 0.72 * (1 - weight) });
  ui.rect(x + 1, y + 1, cell - 2, cell - 2, { fill: "#fff", "fill-opacity": 0.22 * weight,
    stroke: "#fff", "stroke-opacity": 0.25 + 0.75 * weight });
  if (weight > 0.005) ui.text(x + cell - 8, y + cell - 9, weight.toFixed(2),
    { "text-anchor": "end", fill: "#fff", "font-weight": 600,
      "paint-order": "stroke", stroke: "#000", "stroke-width": 3 });
});
const [askedX, askedY] = corner(scene.places[state.object]);
ui.rect(askedX, askedY, cell, cell, { fill: "none", stroke: "#f2a65a", "stroke-width": 2.5,
  "stroke-dasharray": "5 4" });
scene.places.forEach((place, i) => {
  const [x, y] = corner(place);
  const button = ui.rect(x, y, cell, cell, { fill: "transparent" });
  ui.active(button, { key: `object-${place}`, group: "objects", pressed: i === state.object, press: () => { state.object = i; },
    label: `object in row ${Math.floor(place / 3) + 1}, column ${place % 3 + 1}: ask about it` });
});

const most = weights.indexOf(Math.max(...weights));
const where = `row ${Math.floor(most / 3) + 1}, column ${most % 3 + 1}`;
const asked = scene.places[state.object];
ui.say(`“${question.join(" ")}”: it answers ${scene.answers[at]}. The ${state.word}, `
  + `“${question[word]}”, looks most at ${where} (${weights[most].toFixed(2)}), which is `
  + (most === asked ? "the object that is asked about."
    : scene.places.includes(most) ? "another object." : "an empty cell."));
