// One sentence, translated word by word; lines lead to what was looked at.
const END = 2, PACE = 700, { n_layers: nLayers, n_heads: nHeads } = data.sizes;
const KINDS = { encoder: "encoder", decoder: "decoder", cross: "cross-attention" };
const kept = data.kept = data.kept || { runs: {} };
const calm = window.matchMedia && matchMedia("(prefers-reduced-motion: reduce)").matches;
const named = (name) => {
  const [kind, layer, h] = name.split("-");
  return `head ${+layer + 1}.${+h + 1} of the ${KINDS[kind]}`;
};

// ------------------------------------------------------------- load, play, switch, run
const run = (off) => kept.runs[off.join()] = kept.runs[off.join()] || (kept.model
  ? greedy(kept.model, data.tokens, { off }, data.rows) : data.still);
const last = () => run(state.ran).steps.length - 1;
const tick = () => {
  clearTimeout(kept.timer);
  if (state.playing) kept.timer = setTimeout(() => {
    if (state.at < last()) state.at += 1;
    state.playing = state.at < last();
    ui.set("at", state.at);
    tick();
  }, PACE);
};
const begin = (moving) => {
  Object.assign(state, { at: moving ? 0 : last(), playing: moving });
  tick();
};
const load = (then) => loadModel(data.weights, (model) => {
  if (!kept.model) Object.assign(kept, { model, runs: {} });
  state.failed = false;
  then();
  ui.set("loaded", true);
}, () => ui.set("failed", true));
const turn = (off) => load(() => {
  Object.assign(state, { off, ran: off });
  begin(!calm);
});
if (state.at === undefined) {
  Object.assign(state, { at: data.still.steps.length - 1, off: [], ran: [], playing: false,
    playSeen: 0, oneSeen: 0, allSeen: 0 });
  onSight(ui.root, () => load(() => begin(!calm)));
}
if (state.play !== state.playSeen) {
  state.playSeen = state.play;
  if (state.playing || state.at < last()) {
    state.playing = !state.playing;
    tick();
  } else begin(true);
}
if (state.one !== state.oneSeen) {
  // one after the other of those that are missed
  const name = data.missed[(state.one - 1) % data.missed.length];
  state.oneSeen = state.one;
  return turn([name]);
}
if (state.all !== state.allSeen) {
  state.allSeen = state.all;
  return turn([]);
}
const flip = (name) => turn(state.off.includes(name)
  ? state.off.filter((other) => other !== name)
  : namesOfHeads(data.sizes).filter((other) => other === name || state.off.includes(other)));
ui.label("play", state.playing ? "Pause" : state.at < last() ? "Go on" : "Play");

// --------------------------------------------- the words: rows on a desk, columns on a phone
const result = run(state.ran), whole = run([]);
const words = (steps) => steps.filter((s) => s.token !== END).map((s) => data.target[s.token]);
const french = words(result.steps), right = words(whole.steps);
const narrow = ui.width < 510, line = 28;
const write = (x, y, words, size, style) => {
  ui.text(x, y, words, style).style.fontSize = `${size}px`;
};
const places = (list, first) => {
  if (narrow) return list.map((word, i) => ({ x: first ? 0 : ui.width - 116, width: 116,
    y: 22 + i * line }));
  const natural = list.map((word) => 8.2 * word.length + 22);
  const room = ui.width - natural.reduce((sum, width) => sum + width, 0);
  const gap = Math.min(10, room / Math.max(list.length - 1, 1));
  let x = Math.max(0, (room - gap * (list.length - 1)) / 2);
  return natural.map((width) => {
    x += width + gap;
    return { x: x - width - gap, width, y: first ? 20 : 158 };
  });
};
const above = places(data.source, true), below = places(french, false);
const on = namesOfHeads(data.sizes).filter((name) => name.startsWith("cross")
  && !state.ran.includes(name)).map((name) => name.split("-"));
const looks = (i) => data.source.map((_, j) => on.reduce((sum, [, layer, h]) =>
  sum + result.steps[i].cross[layer][h][j], 0) / Math.max(on.length, 1));
const strongest = data.source.map(() => 0);
below.forEach((to, i) => {
  if (i > state.at) return;
  const now = i === Math.min(state.at, french.length - 1) && state.at < last();
  looks(i).forEach((weight, j) => {
    if (now) strongest[j] = weight;
    if (weight < 0.05) return;
    const from = above[j], style = { fill: "none", stroke: now ? "orange" : "blue",
      "stroke-width": 1 + 5 * weight, "stroke-opacity": now ? 0.25 + 0.75 * weight : weight,
      "stroke-linecap": "round" };
    if (narrow) {
      const [x0, x1, y0, y1] = [from.width + 2, to.x - 2, from.y + 12, to.y + 12];
      ui.path(`M${x0} ${y0}C${(x0 + x1) / 2} ${y0} ${(x0 + x1) / 2} ${y1} ${x1} ${y1}`, style);
    } else {
      const [x0, x1] = [from.x + from.width / 2, to.x + to.width / 2];
      ui.path(`M${x0} 48C${x0} 103 ${x1} 103 ${x1} 156`, style);
    }
  });
});
const chip = ({ x, y, width }, word, { fill = "ink", stroke = "grid", bold, weight = 0 }) => {
  const tall = narrow ? 24 : 28;
  ui.rect(x, y, width, tall, { fill: "surface", rx: 6 });
  ui.rect(x, y, width, tall, { fill: "orange", "fill-opacity": 0.35 * weight, rx: 6 });
  ui.rect(x, y, width, tall, { fill: "none", stroke, rx: 6, "stroke-width": bold ? 2.5 : 1 });
  write(x + width / 2, y + tall / 2 + 5, word, 15, { fill, "text-anchor": "middle",
    "font-weight": bold ? 650 : 400 });
};
const quiet = { fill: "muted" };
write(0, 12, "English", 12, quiet);
if (narrow) write(ui.width - 116, 12, "French", 12, quiet);
else write(0, 146, "French", 12, quiet);
above.forEach((place, j) => chip(place, data.source[j], { weight: strongest[j] }));
below.forEach((place, i) => {
  const differs = french[i] !== right[i], now = i === state.at && state.at < last();
  if (i <= state.at) chip(place, french[i], { bold: now || differs,
    fill: differs ? "red" : "ink", stroke: now ? "orange" : differs ? "red" : "blue" });
});

// ------------------------------------------------------- the heads, each a table and a switch
const top = narrow ? 22 + line * data.rows + 6 : 208, gap = narrow ? 10 : 28;
const group = (ui.width - 2 * gap) / 3, cell = group / nHeads;
const tall = Math.min(cell - 3, narrow ? 34 : 48);
Object.keys(KINDS).forEach((kind, k) => {
  const left = k * (group + gap);
  ui.text(left, top + 12, narrow ? kind : KINDS[kind], { "font-weight": 650 });
  for (let i = 0; i < nLayers * nHeads; i++) {
    const layer = Math.floor(i / nHeads), h = i % nHeads, name = `${kind}-${layer}-${h}`;
    const off = state.off.includes(name), x = left + h * cell, y = top + 20 + layer * (tall + 6);
    const table = kind === "encoder" ? result.encoder[layer].map((heads) => heads[h])
      : result.steps.slice(0, state.at + 1).map((s) =>
        s[kind === "cross" ? "cross" : "own"][layer][h]);
    const nRows = kind === "encoder" ? data.tokens.length : result.steps.length;
    const nColumns = kind === "decoder" ? result.steps.length : data.tokens.length;
    const paths = off ? {} : shades(table, x, y, cell - 4, tall, nRows, nColumns);
    for (const level in paths) ui.path(paths[level], { "fill-opacity": level / 8 });
    if (off) {
      ui.line(x, y, x + cell - 4, y + tall, { stroke: "red", "stroke-width": 2 });
      ui.line(x, y + tall, x + cell - 4, y, { stroke: "red", "stroke-width": 2 });
    }
    const frame = ui.rect(x, y, cell - 4, tall, { fill: "transparent", rx: 3,
      stroke: off ? "red" : "muted", "stroke-width": off ? 2 : 1 });
    ui.active(frame, { key: name, group: "heads", press: () => flip(name), pressed: !off,
      label: `${KINDS[kind]}, layer ${layer + 1}, head ${h + 1}` });
  }
});
const foot = top + 20 + nLayers * (tall + 6) + 12;
write(0, foot, narrow ? "Press a square to switch that head off." : "Each square is one head: "
  + "where it looks in this sentence. Press one to switch it off.", 12, quiet);

// ------------------------------------------------------------------------------ in words
const said = french.join(" "), missing = state.ran.map(named).join(", ");
const lines = narrow ? "Lines: where it looks (cross-attention, mean of its heads)."
  : "The lines show where it looks to write each word: the weights of cross-attention, the mean "
    + "over its heads.";
if (state.failed) ui.say("The model's file did not arrive. Press a button to try again.");
else if (!state.ran.length) ui.say(`“${data.source.join(" ")}” becomes “${said}”. ${lines} `
  + `One at a time, ${data.missed.length} of the ${namesOfHeads(data.sizes).length} heads `
  + "change this sentence when they are off.");
else ui.say(`Without ${state.ran.length > 3 ? `${state.ran.length} heads` : missing} the model `
  + `writes “${said}”${said === right.join(" ") ? ", as the whole one does."
    : `; with all heads on, “${right.join(" ")}”.`}`);
