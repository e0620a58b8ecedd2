const scene = data.scenes[state.scene], n = scene.places.length;
if (state.object === undefined || state.object >= n) state.object = 0;
const at = state.object + n * data.kinds.indexOf(state.kind), asked = scene.places[state.object];
const question = scene.questions[at];
const weights = scene.maps[at].map((row) => row.map((weight) => weight / 100));
const narrow = ui.width < 500, room = Math.min(narrow ? ui.width : 324, ui.height - 8);
const cell = room / 3, pixel = cell / 8, top = ui.height - room - 4;
const left = narrow ? (ui.width - room) / 2 : 240;
const corner = (place) => [left + (place % 3) * cell, top + Math.floor(place / 3) * cell];

// ------------------------------------------- the scene: a cell is as bright as its weight
ui.rect(left, top, room, room, { fill: "#000" });
scene.places.forEach((place, i) => {
  const [x, y] = corner(place);
  scene.pixels[i].forEach((value, j) => {
    if (value) ui.rect(x + (j % 8) * pixel, y + Math.floor(j / 8) * pixel, pixel, pixel,
      { fill: scene.paint[i], "fill-opacity": value / 9 });
  });
});
for (let place = 0; place < 9; place++) {
  const [x, y] = corner(place), lit = Math.max(weights[0][place], weights[1][place]);
  ui.rect(x, y, cell, cell, { fill: "#000", "fill-opacity": 0.5 * (1 - lit) });
  ui.rect(x + 1, y + 1, cell - 2, cell - 2, { fill: "#fff", "fill-opacity": 0.22 * lit,
    stroke: "#fff", "stroke-opacity": 0.25 + 0.75 * lit });
}

// ------------------------------------- the words, and lines to the cells they attend to
const colours = ["blue", "orange"], bright = ["#74b3ff", "#f2a65a"];  // on black: by night
const boxes = question.map((word, i) => narrow
  ? { x: i ? left + 0.5 * room + 6 : left, y: 22, w: 0.5 * room - 6, h: 30 }
  : { x: 0, y: top + (i ? 0.42 : 0.16) * room, w: 150, h: 32 });
question.forEach((word, i) => {
  const { x, y, w, h } = boxes[i];
  const from = narrow ? [x + w / 2, y + h] : [x + w, y + h / 2];
  weights[i].forEach((weight, place) => {
    if (weight < 0.05) return;
    const [cx, cy] = corner(place), to = narrow ? [cx + cell * (i ? 0.6 : 0.4), cy + 22]
      : [cx + 14, cy + cell * (i ? 0.6 : 0.4)];
    const path = narrow ? `M${from}C${from[0]} ${from[1] + 30} ${to[0]} ${to[1] - 40} ${to}`
      : `M${from}C${from[0] + 50} ${from[1]} ${to[0] - 60} ${to[1]} ${to}`;
    const style = { fill: "none", "stroke-linecap": "round" }, thick = 1 + 5 * weight;
    ui.path(path, { ...style, stroke: "#fff", "stroke-width": thick + 2.5 });
    ui.path(path, { ...style, stroke: colours[i], "stroke-width": thick });
    ui.circle(...to, 3 + 3 * weight, { fill: colours[i], stroke: "#fff", "stroke-width": 1.5 });
  });
  weights[i].forEach((weight, place) => {
    const [cx, cy] = corner(place);
    if (weight > 0.005) ui.text(cx + cell - 7, cy + (i ? cell - 8 : 18), weight.toFixed(2),
      { "text-anchor": "end", fill: bright[i], "font-weight": 650, "paint-order": "stroke",
        stroke: "#000", "stroke-width": 3 });
  });
  ui.rect(x, y, w, h, { fill: "surface", stroke: colours[i], "stroke-width": 2, rx: 6 });
  ui.text(x + w / 2, y + h / 2 + 5, word, { "text-anchor": "middle", "font-weight": 650,
    fill: colours[i] });
});
const line = narrow ? { x: left, y: 13 } : { x: 0, y: top + 0.16 * room - 10 };
ui.text(line.x, line.y, narrow ? `It answers: ${scene.answers[at]}. Press another object.`
  : "The question", { fill: "muted" });
if (!narrow) {
  ui.text(0, top + 0.7 * room, "It answers", { fill: "muted" });
  ui.text(0, top + 0.7 * room + 22, scene.answers[at], { "font-weight": 650 })
    .style.fontSize = "18px";
  ui.text(0, ui.height - 10, "Press another object.", { fill: "muted" });
}

// -------------------------------------------------------------------------- the objects
const [askedX, askedY] = corner(asked);
ui.rect(askedX, askedY, cell, cell, { fill: "none", stroke: "#fff", "stroke-width": 2.5,
  "stroke-dasharray": "5 4" });
const where = (place) => `row ${Math.floor(place / 3) + 1}, column ${place % 3 + 1}`;
scene.places.forEach((place, i) => {
  const button = ui.rect(...corner(place), cell, cell, { fill: "transparent" });
  ui.active(button, { key: `object-${place}`, group: "objects", pressed: i === state.object,
    press: () => { state.object = i; }, label: `object in ${where(place)}: ask about it` });
});

const most = weights.map((row) => row.indexOf(Math.max(...row)));
const attends = question.map((word, i) => `“${word}” attends most to ${where(most[i])} (${
  weights[i][most[i]].toFixed(2)}), ${most[i] === asked ? "the object that is asked about"
  : scene.places.includes(most[i]) ? "another object" : "an empty cell"}`);
ui.say(`“${question.join(" ")}”: it answers ${scene.answers[at]}. ${attends.join("; ")}.`);
