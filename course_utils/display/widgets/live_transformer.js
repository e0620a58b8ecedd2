// ------------------------------------------------------ what is read, what is left out
const KINDS = { encoder: "self-attention", decoder: "masked self-attention",
  cross: "cross-attention" };
// What a box computes, and the lines of code for it.
const PARTS = {
  embedding: ["x = √d E[token] + P[t]",
    "x = math.sqrt(d_model) * embedding(tokens)\nx = x + positions[: tokens.shape[1]]"],
  attention: ["x + [C₁ … C_H] W_O,  C_h = softmax(Q_h K_hᵀ / √dₖ) V_h",
    "q, k, v = split_heads(qkv(norm(x)), n_heads, parts=3)\n"
    + "context, weights = attention(q, k, v, mask)\nx = x + output(merge_heads(context))"],
  cross: ["x + [C₁ … C_H] W_O,  C_h = softmax(Q_h K_hᵀ / √dₖ) V_h",
    "(q,) = split_heads(query(norm(x)), n_heads)\n"
    + "k, v = split_heads(key_value(memory), n_heads, parts=2)\n"
    + "context, weights = attention(q, k, v, source_mask)\n"
    + "x = x + output(merge_heads(context))"],
  ff: ["x + max(0, norm(x) W₁ + b₁) W₂ + b₂",
    "hidden = torch.relu(wide(norm(x)))\nx = x + narrow(hidden)"],
  norm: ["norm(x) = γ (x − mean) / √(variance + ε) + β",
    "centred = x - x.mean()\nspread = torch.sqrt(centred.square().mean() + eps)\n"
    + "x = gamma * centred / spread + beta"],
  logits: ["softmax(E x)",
    "logits = x @ target_embedding.weight.T\nodds = torch.softmax(logits, dim=-1)"],
};
const NAMES = { embedding: "embedding + positions", ff: "feed-forward", norm: "norm" };
const partOf = (box) => box === "logits" ? box : box.endsWith("-ff") ? "ff"
  : /^(encoder|decoder)-\d+$/.test(box) ? "attention" : box.split("-")[+!/^cross/.test(box)];
const nameOf = (box) => {
  const [kind, layer] = box.split("-"), stack = kind === "encoder" ? "encoder" : "decoder";
  if (box === "logits") return "Logits";
  return `${stack[0].toUpperCase()}${stack.slice(1)}${/\d/.test(layer) ? `, layer ${+layer + 1}` : ""}: ${
    NAMES[partOf(box)] || KINDS[kind]}`;
};
const END = 2, FIRST = 4, { n_layers: nLayers, n_heads: nHeads } = data.sizes;
const kept = data.kept = data.kept || { runs: {}, tests: {},
  ids: new Map(data.source.map((word, i) => [word, i]).slice(FIRST)) };
// W_O, with its O below the line: in a drawing and beside it
const setMath = (element, words) => {
  const drawn = element.namespaceURI.endsWith("svg");
  element.replaceChildren(...words.split(/_(\w)/).map((part, i) => {
    const piece = document.createElementNS(element.namespaceURI,
      drawn ? "tspan" : i % 2 ? "sub" : "span");
    piece.textContent = part;
    if (drawn && i) piece.setAttribute("dy", i % 2 ? 3 : -3);
    if (drawn && i % 2) piece.style.fontSize = "11px";
    return piece;
  }));
};
const chance = (share) => share < 0.0005 ? "< 0.001" : share.toFixed(3);
const show = (id) => ({ 1: "begin", 2: "end" })[id] || data.target[id];

// the list of examples follows the box, so that each of them can be chosen at any time
const goldOf = (sentence) => Object.hasOwn(data.gold, sentence) && data.gold[sentence];
const example = goldOf(state.sentence) ? state.sentence : data.own;
if (state.exampleSeen !== undefined && state.example !== state.exampleSeen) {
  state.exampleSeen = state.example;
  return ui.set("sentence", state.example === data.own ? "" : state.example);
}
state.exampleSeen = example;
if (state.example !== example) return ui.set("example", example);
const idOf = (word) => [word, word.toLowerCase(), word.toUpperCase()]
  .map((form) => kept.ids.get(form)).find((id) => id !== undefined);
const parse = (sentence) => {
  const typed = sentence.replace(/’/g, "'").replace(/([.,;:!?]|'s\b|')/g, " $1 ")
    .split(/\s+/).filter(Boolean);  // the girl's: the, girl, 's
  const unknown = [...new Set(typed.filter((word) => idOf(word) === undefined))];
  const stop = idOf("."), tokens = typed.map(idOf);
  if (typed.length && tokens.at(-1) !== stop) tokens.push(stop);
  const readable = typed.length > 0 && !unknown.length && tokens.length <= data.most;
  const read = [...tokens.map((id, i) => data.source[id] || typed[i]), "end"];
  return { sentence, typed, unknown, readable, read, tokens: [...tokens, END] };
};
const { typed, unknown, readable, tokens: draft } = parse(state.sentence);
// A sentence is translated when it is whole: after its last stop, Enter, or a pause.
const complete = /[.!?]\s*$/.test(state.sentence) || state.waited === state.sentence
  || state.sentenceEntered === state.sentence;
if (!complete && kept.waiting !== state.sentence) {
  kept.waiting = state.sentence;
  clearTimeout(kept.pause);
  kept.pause = setTimeout(() => ui.set("waited", state.sentence), 1200);
}
// Until then, and where a word is unknown, the last one stays.
if (readable && complete) kept.asked = parse(state.sentence);
kept.asked ||= parse(data.stillOf);
const { tokens, read, sentence: askedFor } = kept.asked;

// the words that may come next, or that begin as the last one does
const BEGIN = 1, open = typed.at(-1) || ".", full = open === ".";
const whole = idOf(open) !== undefined, before = whole ? open : typed.at(-2) || ".";
const after = (data.follows[before === "." ? BEGIN : idOf(before)] || [])
  .map((id) => data.source[id]);
const alike = (words) => words.filter((word) => word !== open
  && word.startsWith(open.toLowerCase()));
const longer = full || /\s$/.test(state.sentence) ? []
  : [...new Set([...(whole ? [] : alike(after)), ...alike([...kept.ids.keys()])])];
const offered = [...new Set([...longer.slice(0, whole ? 8 : 12), ...(whole ? after : [])])];
// how many letters must be put in, taken out or changed
const apart = (a, b) => {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const above = row;
    row = [i];
    for (let j = 1; j <= b.length; j++) row[j] = Math.min(above[j] + 1, row[j - 1] + 1,
      above[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
  }
  return row.at(-1);
};
const nearest = (word) => [...kept.ids.keys()].filter((other) => other !== ".")
  .map((other) => [apart(word.toLowerCase(), other.toLowerCase()), other])
  .sort((a, b) => a[0] - b[0]).slice(0, 6).map(([, other]) => other);
const strange = unknown.find((word) => word !== open || complete || !offered.length);
const near = strange ? nearest(strange) : [];
const heading = strange ? `Instead of “${strange}”:` : full ? "New sentence:"
  : offered.length ? "Next:" : "";
ui.suggest("sentence", heading, strange ? near : offered, (word) => (strange
  ? typed.map((other) => other === strange ? word : other)
  : [...(full ? [] : longer.includes(word) ? typed.slice(0, -1) : typed), word]).join(" "));

// ----------------------------------------------------------------- what is switched off
const everyHead = namesOfHeads(data.sizes), [ZERO, MEAN] = data.ablations;
if (state.heads !== state.headsSeen) {
  state.headsSeen = state.heads;
  const [kind, rest] = state.heads.split(": "), layer = parseInt((rest || "").slice(6), 10);
  if (state.heads === "all on") state.off = [];
  else if (rest) state.off = everyHead.filter((name) =>
    name.startsWith(layer ? `${kind}-${layer - 1}-` : kind));
  else if (state.heads !== "my own choice") state.off = everyHead.filter((name) =>
    !name.endsWith("-0"));
}
const changes = { off: state.off, source: state.source, target: state.target,
  scale: state.scale, mean: state.ablation === MEAN && state.off.length > 0 };
const translate = (ids, what) => greedy(kept.model, ids,
  what.mean ? { ...what, means: data.means } : what);
const altered = () => state.off.length > 0 || state.source || state.target || state.scale !== 1;
const changed = altered();
const flip = (name) => {
  state.off = state.off.includes(name) ? state.off.filter((other) => other !== name)
    : everyHead.filter((other) => other === name || state.off.includes(other));
  state.headsSeen = state.off.length ? "my own choice" : "all on";
  ui.set("heads", state.headsSeen);
};

// ------------------------------------------- what is seen as a link, to send and to open
const FLAGS = ["source", "target"];
const everyBox = ["embedding", "norm"].flatMap((part) => [`encoder-${part}`, `decoder-${part}`])
  .concat("logits", Array.from({ length: nLayers }, (_, i) => [`encoder-${i}`, `encoder-${i}-ff`,
    `decoder-${i}`, `cross-${i}`, `decoder-${i}-ff`]).flat());
const linkTo = () => {
  const said = new URLSearchParams({ s: askedFor, at: state.at, to: state.most,
    head: state.head });
  if (state.box) said.set("box", state.box);
  if (state.row) said.set("row", state.row);
  if (state.scale !== 1) said.set("times", state.scale);
  if (state.off.length) said.set("off", state.off.join(" "));
  if (state.ablation === MEAN) said.set("mean", "1");
  FLAGS.filter((key) => state[key]).forEach((key) => said.set(key, "1"));
  return `#${data.name}?${said}`;
};
const readLink = () => {
  const [place, rest] = location.hash.split("?");
  if (place !== `#${data.name}` || !rest) return false;
  const said = new URLSearchParams(rest), known = (name) => everyHead.includes(name);
  state.off = (said.get("off") || "").split(" ").filter(known);
  state.headsSeen = state.heads = state.off.length ? "my own choice" : "all on";
  if (known(said.get("head"))) state.head = said.get("head");
  state.box = everyBox.includes(said.get("box")) ? said.get("box") : "";
  state.scale = data.scales.find((factor) => `${factor}` === said.get("times")) ?? 1;
  const count = (key) => Math.max(0, parseInt(said.get(key), 10) || 0);
  state.row = count("row");
  kept.linked = { at: count("at"), most: count("to") };
  Object.assign(state, kept.linked);
  state.sentence = (said.get("s") || data.stillOf).slice(0, 300);
  state.waited = state.sentence;
  state.ablation = said.get("mean") ? MEAN : ZERO;
  FLAGS.forEach((key) => { state[key] = said.get(key) === "1"; });
  state.exampleSeen = state.example = goldOf(state.sentence) ? state.sentence : data.own;
  // what the link changes is seen where it can be changed back
  if (altered()) ui.root.querySelector(".cw-fold").open = true;
  ["sentence", "example", "ablation", "scale", ...FLAGS].forEach((key) => ui.write(key, state[key]));
  return true;
};

// -------------------------------------------------- load, run, play, test, when asked to
const load = (then) => kept.model ? then() : loadModel(data.name, (model) => {
  kept.model = model;
  state.failed = false;
  then();
  ui.set("loaded", true);
}, () => ui.set("failed", true));
const run = (what) => {
  const key = JSON.stringify([tokens, what]);
  if (Object.keys(kept.runs).length > 50) kept.runs = {};
  return kept.runs[key] = kept.runs[key] || translate(tokens, what);
};
const calm = window.matchMedia && matchMedia("(prefers-reduced-motion: reduce)").matches;
const play = () => {
  clearTimeout(kept.timer);
  if (state.playing) kept.timer = setTimeout(() => {
    state.at += 1;
    state.playing = state.at < kept.shown.steps.length - 1;
    ui.set("at", state.at);
    play();
  }, 700);
};
const begin = () => {
  Object.assign(state, { at: 0, most: 0, finished: false, playing: true });
  play();
};
const testKey = JSON.stringify(changes), wholeKey = JSON.stringify({ off: [], source: false,
  target: false, scale: 1, mean: false });
const test = (key) => {
  const record = kept.tests[key] = kept.tests[key] || { done: 0, right: 0 };
  const next = () => {
    for (const [source, target] of data.tested.slice(record.done, record.done + 5)) {
      const said = translate(source, JSON.parse(key)).steps.map((s) => s.token);
      record.done += 1;
      record.right += said.join() === target.join() ? 1 : 0;
    }
    ui.set("tested", (state.tested || 0) + 1);
    if (record.done < data.tested.length) setTimeout(next);
    else if (key !== testKey) test(testKey);
  };
  if (!record.done) setTimeout(next);
};
if (state.at === undefined) {
  Object.assign(state, { at: Math.min(2, data.still.steps.length - 1),
    most: data.still.steps.length - 1, head: "cross-1-0", box: "", row: 0, playSeen: 0, nextSeen: 0,
    testSeen: 0, copySeen: 0, written: data.stillOf, playing: false });
  const linked = readLink();
  onSight(ui.root, () => load(() => {
    if (!linked && !calm) begin();
    else if (!linked) Object.assign(state, { at: Infinity, most: Infinity });
  }));
  if (linked) return ui.set("heads", state.heads);
}
if (state.play !== state.playSeen) {
  state.playSeen = state.play;
  load(() => {
    if (state.playing) state.playing = false;
    else if (state.finished) begin();
    else state.playing = true;
    play();
  });
}
if (state.next !== state.nextSeen) {
  state.nextSeen = state.next;
  state.playing = false;
  clearTimeout(kept.timer);
  state.at = state.finished ? state.most = 0 : state.at + 1;
  load(() => {});
}
if (state.test !== state.testSeen) {
  state.testSeen = state.test;
  load(() => test(kept.tests[wholeKey] ? testKey : wholeKey));
}
// The game: the fewest heads with which enough sentences still come out right, tested at
// every switch. Only heads count, so the rest has to be as it was trained.
const goal = Math.ceil(0.8 * data.tested.length), headsOn = everyHead.length - state.off.length;
const fair = !state.source && !state.target && state.scale === 1;
if (state.game && kept.model && fair && !kept.tests[testKey]) test(testKey);
const played = kept.tests[testKey];
if (state.game && fair && played && played.done === data.tested.length && played.right >= goal) {
  kept.best = Math.min(kept.best || Infinity, headsOn);
}
const unloaded = !changed && askedFor === data.stillOf ? data.still : null;
const result = kept.shown = kept.model ? run(changes) : unloaded;
const uncut = result && (changed ? run({ off: [] }) : result);
const last = result ? result.steps.length - 1 : 0;
if (state.written !== askedFor) {
  clearTimeout(kept.timer);
  state.playing = false;
}
if (result) {
  // what had been written to its end is so again when a part is left out
  const again = state.finished && state.switches !== testKey;
  state.at = state.written !== askedFor || again ? last : Math.min(state.at, last);
  if (kept.linked) Object.assign(state, kept.linked, { at: Math.min(kept.linked.at, last) });
  if (kept.model) kept.linked = null;
  state.most = Math.min(last, Math.max(state.most, state.at)); // the furthest word written
  Object.assign(state, { finished: state.at === last, switches: testKey });
}
state.written = askedFor;
if (state.row >= read.length) state.row = 0;
ui.root.querySelector(".cw-says").tabIndex = 0; // on a phone it is scrolled
ui.label("play", state.playing ? "Pause" : "Play");
const here = linkTo(), onSite = ui.root.closest(".bd-article");
if (state.copy !== state.copySeen) {
  const link = location.href.split("#")[0] + here;
  state.copySeen = state.copy;
  state.copied = `The link is ${link}`;
  kept.copied = here;
  if (navigator.clipboard) navigator.clipboard.writeText(link).then(
    () => ui.set("copied", "The link to what you see is in the clipboard."), () => {});
} else if (kept.copied !== here) state.copied = "";
if (onSite && !state.playing && kept.model && (state.linkSeen || here) !== here) {
  try { history.replaceState(null, "", here); } catch { /* not allowed here: no matter */ }
}
if (!state.playing) state.linkSeen = here;

// ------------------------------------------------------------------ the tables of weights
const written = result ? ["begin", ...result.steps.map((s) => show(s.token))] : ["begin"];
const tableOf = (name) => {
  if (!result) return null;
  const [kind, layer, h] = name.split("-");
  if (kind === "encoder") return result.encoder[layer].map((heads) => heads[h]);
  return result.steps.slice(0, state.most + 1)
    .map((s) => s[kind === "cross" ? "cross" : "own"][layer][h]);
};
const shade = (...box) => {
  const paths = shades(...box);
  for (const level in paths) ui.path(paths[level], { "fill-opacity": level / 8 });
};
const [kindShown, layerShown, headShown] = state.head.split("-");
const shown = tableOf(state.head), isOff = state.off.includes(state.head);
const ofEncoder = (state.box || state.head).startsWith("encoder");
const rowShown = ofEncoder ? state.row : state.at;

// ------------------------------------------------------------- source, and translation
const narrow = ui.width < 540, line = 29;
const places = (words) => {
  let x = 0, row = 0;
  return words.map((word) => {
    const width = 7.4 * word.length + 15;
    if (x + width > ui.width) { x = 0; row += 1; }
    x += width + 5;
    return { x: x - width - 5, row, width };
  });
};
const linesOf = (words, most) => Math.min(most, places(words).at(-1).row + 1);
const chips = (words, y, lines, look) => places(words).forEach(({ x, row, width }, i) => {
  if (row >= lines) return;
  const { weight = 0, stroke = "grid", fill = "ink", active, bold } = look(i);
  const box = [x, y + row * line, width, line - 5];
  ui.rect(...box, { "fill-opacity": weight, rx: 5 });
  ui.text(x + width / 2, y + row * line + 17, words[i], { "text-anchor": "middle",
    fill, "font-weight": bold ? 650 : 400, ...ui.on(weight) });
  const frame = ui.rect(...box, { fill: "transparent", stroke, rx: 5,
    "stroke-width": bold ? 2.5 : 1 });
  if (active) ui.active(frame, active);
});
const sentence = (steps) => steps.filter((s) => s.token !== END)
  .map((s) => show(s.token)).join(" ");
const seenBy = (kind, i) => shown && !isOff && !state.box && kindShown === kind
  && shown[rowShown][i] || 0;
const sourceLines = linesOf(read, narrow ? 3 : 2);
const targetLines = narrow ? Math.min(4, linesOf(uncut
  ? ["begin", ...uncut.steps.map((s) => show(s.token))] : read, 4) + 1) : 2;
const quoted = unknown.map((word) => `“${word}”`).join(", ");
ui.text(0, 13, unknown.length && complete ? `I do not know ${quoted}; below is the `
  + "last sentence" : "Source", { fill: unknown.length && complete ? "red" : "muted" });
chips(read, 22, sourceLines, (i) => ({ weight: seenBy("cross", i) + seenBy("encoder", i),
  stroke: ofEncoder && i === state.row ? "blue" : "grid", bold: ofEncoder && i === state.row,
  active: ofEncoder && { key: `source-${i}`, group: "words", press: () => { state.row = i; },
    label: `source word ${i + 1}, ${read[i]}: look at it` } }));
let top = 22 + sourceLines * line + 18;
ui.text(0, top - 5, changed ? "Translation, with parts left out" : "Translation",
  { fill: "muted" });
chips(written.slice(0, result ? state.most + 2 : 1), top + 4, targetLines, (i) => {
  const differs = uncut && i > 0 && (!uncut.steps[i - 1]
    || uncut.steps[i - 1].token !== result.steps[i - 1].token);
  return { weight: seenBy("decoder", i),
    fill: differs ? "orange" : i > state.at + 1 ? "muted" : "ink",
    stroke: differs ? "orange" : i === state.at + 1 ? "blue" : "grid",
    bold: i === state.at + 1,
    active: result && i > 0 && { key: `word-${i}`, group: "words", press: () => {
      clearTimeout(kept.timer);
      state.playing = false;
      state.at = i === state.at + 1 ? i % result.steps.length : i - 1;
    }, label: `word ${i}, ${written[i]}: ${i === state.at + 1 ? "go on" : "go there"}` } };
});
top += 4 + targetLines * line + 12;
const room = Math.floor(ui.width / 7) - 13, uncutSaid = uncut ? sentence(uncut.steps) : "";
if (changed && uncut) ui.text(0, top, `Whole model: ${uncutSaid.length > room
  ? `${uncutSaid.slice(0, room - 2)} …` : uncutSaid}`, { fill: "muted" });
top += 14;

// ------------------------------- the model as a diagram: its boxes, and the heads in them
const SMALL = 24, GAP = 9, thumb = narrow ? 54 : 38, TALL = 18 + 24 + thumb + 6;
const heads = { x: 0, y: top, w: narrow ? ui.width : 0.59 * ui.width };
const half = narrow ? heads.w : heads.w / 2 - 9;
const layers = Array.from({ length: nLayers }, (_, layer) => layer);
const stacks = { // from below
  encoder: ["encoder-embedding", ...layers.flatMap((i) => [`encoder-${i}`, `encoder-${i}-ff`]),
    "encoder-norm"],
  decoder: ["decoder-embedding", ...layers.flatMap((i) => [`decoder-${i}`, `cross-${i}`,
    `decoder-${i}-ff`]), "decoder-norm", "logits"] };
const isWide = (box) => /^[a-z]+-\d+$/.test(box);
const heightOf = (box) => isWide(box) ? TALL : SMALL;
const tallness = (stack) => stacks[stack].reduce((sum, box) => sum + heightOf(box) + GAP, 0);
const drawHead = (name, x, y, w) => { // one head: its switch, and below it its weights
  const [kind, layer, h] = name.split("-"), off = state.off.includes(name), map = tableOf(name);
  const said = `${kind}, layer ${+layer + 1}, head ${+h + 1}`;
  const lines = written.length - (result ? 1 : 0);
  if (map && !off) shade(map, x, y + 22, w, thumb, kind === "encoder" ? read.length : lines,
    kind === "decoder" ? lines : read.length);
  if (off) ui.line(x, y + 22 + thumb, x + w, y + 22, { stroke: "orange", "stroke-width": 2 });
  const chosen = name === state.head && !state.box;
  const frame = ui.rect(x, y + 22, w, thumb, { fill: "transparent",
    stroke: chosen ? "orange" : "muted", "stroke-width": chosen ? 3 : 1 });
  ui.active(frame, { key: name, group: "heads", label: `${said}: show it in large`,
    press: () => { state.head = name; state.box = ""; } });
  ui.text(x + w / 2, y + 16, off ? "off" : "on", { "text-anchor": "middle",
    fill: off ? "orange" : "green", "font-weight": 650 });
  const touch = ui.rect(x, y - 2, w, 24, { fill: "transparent" });
  ui.active(touch, { key: `switch-${name}`, group: "switches", press: () => flip(name),
    label: `${said} is ${off ? "off: switch it on" : "on: switch it off"}` });
};
const drawStack = (stack, x, bottom) => {
  const left = x + 20, w = half - 20, middles = {};
  let y = bottom;
  ui.text(x + half, bottom + 14, stack === "encoder" ? "source words" : "words written so far",
    { "text-anchor": "end", fill: "muted" });
  ui.line(x + 7, bottom + 4, x + 7, bottom - tallness(stack) + GAP + SMALL / 2,
    { stroke: "grid", "stroke-width": 7 }); // the residual stream
  stacks[stack].forEach((box) => {
    const h = heightOf(box), chosen = box === state.box, part = partOf(box);
    y -= h;
    const adds = isWide(box) || part === "ff";
    ui.line(x + 7, y + h - 7, left, y + h - 7, { stroke: "muted" });
    if (adds) {
      ui.line(left, y + 7, x + 7, y + 7, { stroke: "muted" });
      ui.circle(x + 7, y + 7, 6, { fill: "surface", stroke: "muted" });
      ui.path(`M${x + 4} ${y + 7}h6m-3 -3v6`, { fill: "none", stroke: "ink" });
    }
    const frame = ui.rect(left, y, w, h, { fill: "surface", rx: 5,
      stroke: chosen ? "orange" : "muted", "stroke-width": chosen ? 3 : 1 });
    ui.text(left + 7, y + (isWide(box) ? 14 : 16), NAMES[part]
      || KINDS[box.split("-")[0]] || box, { "font-weight": chosen ? 650 : 400,
      "pointer-events": "none" });
    ui.active(frame, { key: `box-${box}`, group: "boxes", label: `${nameOf(box)}: its numbers`,
      pressed: chosen, press: () => { state.box = chosen ? "" : box; } });
    if (isWide(box)) for (let head = 0; head < nHeads; head++) {
      const wide = (w - 8) / nHeads;
      drawHead(`${box}-${head}`, left + 6 + head * wide, y + 18, wide - 5);
    }
    middles[box] = y + h / 2;
    y -= GAP;
  });
  return middles;
};
let y = heads.y;
const above = (stack) => heads.y + tallness(stack);
if (narrow) {
  drawStack("encoder", 0, above("encoder"));
  drawStack("decoder", 0, above("encoder") + 34 + tallness("decoder"));
  y = above("encoder") + 50 + tallness("decoder");
} else {
  const bottom = above("decoder"), from = drawStack("encoder", 0, bottom);
  // the memory: keys and values of the source, for every cross-attention
  const up = bottom - tallness("encoder") - 4, lane = half + 9;
  const across = layers.map((i) => bottom - SMALL - GAP
    - i * (2 * (TALL + GAP) + SMALL + GAP) - (TALL + GAP) - TALL / 2);
  [["blue", 0], ["green", 4]].forEach(([colour, shift]) => {
    ui.path(`M${half / 2 + shift} ${from["encoder-norm"] - SMALL / 2}V${up + shift}H${
      lane + shift}M${lane + shift} ${across[0] + shift}V${across.at(-1) + shift}${across
      .map((at) => `M${lane + shift} ${at + shift}H${half + 38}`).join("")}`,
    { fill: "none", stroke: colour, "stroke-width": 1.5 });
  });
  drawStack("decoder", half + 18, bottom);
  ["Press a box or a small table:", "its numbers stand at the right.",
    "on and off switch a head."].forEach((line, i) =>
    ui.text(0, heads.y + 14 + 19 * i, line, { fill: "muted" }));
  ui.text(half / 2 + 12, up - 6, "memory", { fill: "muted" });
  y = bottom + 20;
}

// ------------------------------------------- the next word, the test, and a head in large
const right = narrow ? { x: 0, y: y + 12, w: ui.width }
  : { x: 0.63 * ui.width, y: top, w: 0.37 * ui.width };
ui.text(right.x, right.y + 12, "Next word, most probable first", { "font-weight": 650 });
const now = result && result.steps[state.at];
const ranked = (odds) => [...odds.keys()].sort((a, b) => odds[b] - odds[a]).slice(0, 5)
  .map((id) => [id, odds[id]]);
const best = now ? now.best || ranked(softmax(now.logits)) : [];
if (!now) ui.text(right.x, right.y + 36, "the model is being loaded", { fill: "muted" });
best.forEach(([id, odds], i) => {
  const at = right.y + 22 + 21 * i;
  ui.text(right.x + 88, at + 13, show(id), { "text-anchor": "end",
    "font-weight": i ? 400 : 650 });
  ui.rect(right.x + 94, at + 2, (right.w - 144) * odds, 14, { fill: i ? "grey" : "blue" });
  ui.text(right.x + 100 + (right.w - 144) * odds, at + 13, chance(odds),
    { fill: "muted" });
});
const count = (key) => {
  const record = kept.tests[key], all = data.tested.length;
  if (!record) return "not tested yet";
  return record.done < all ? `${record.done} done …` : `${record.right} of ${all} right`;
};
ui.text(right.x, right.y + 148, `Whole model: ${count(wholeKey)}`);
ui.text(right.x, right.y + 166, changed ? `As it is now: ${count(testKey)}` : "",
  { fill: "orange", "font-weight": 650 });
const rows = ofEncoder ? read : written.slice(0, -1);
const columns = kindShown === "decoder" ? written.slice(0, -1) : read;
const label = Math.min(12 + 7.2 * Math.max(...rows.map((word) => word.length)), 92);
const big = { x: right.x + label, y: right.y + 262, w: right.w - label - 14,
  h: ui.height - right.y - 268 };
// a box: what it computes for the chosen word, the first numbers of each vector
const what = changes.mean ? { ...changes, means: data.means } : changes;
const soFar = result ? result.steps.slice(0, state.most).map((s) => s.token) : [];
const vectors = state.box && kept.model
  ? stages(kept.model, tokens, soFar, state.box, rowShown, what) : [];
const norm = (x) => Math.sqrt(x.reduce((sum, value) => sum + value * value, 0)).toFixed(1);
const some = (x, n) => [...x].slice(0, n).map((value) =>
  value.toFixed(2).replace("-", "−"));
const titles = state.box ? [nameOf(state.box), `for “${rows[rowShown]}”`]
  : [`${kindShown}, layer ${+layerShown + 1}, head ${+headShown + 1}${
    isOff ? " (off)" : ": rows ask"}`];
titles.forEach((line, i) => ui.text(right.x, right.y + 192 + 18 * i, line,
  { "font-weight": i ? 400 : 650 }));
vectors.forEach(([name, x], i) => {
  const at = right.y + 240 + 44 * i;
  setMath(ui.text(right.x, at, "", { fill: "muted" }), name);
  ui.text(right.x + right.w, at, `${x.length} numbers, length ${norm(x)}`,
    { fill: "muted", "text-anchor": "end" });
  ui.text(right.x, at + 19, `(${some(x, narrow ? 6 : 5).join(", ")}, …)`);
});
const wide = Math.min(big.w / columns.length, 34), high = Math.min(big.h / rows.length, narrow ? 32 : 26);
const fit = (element, room) => {
  element.style.fontSize = `${Math.max(8, Math.min(13, 0.9 * room)).toFixed(1)}px`;
};
if (shown && !state.box) {
  columns.forEach((word, j) => {
    const x = big.x + (j + 0.5) * wide + 4;
    fit(ui.text(x, big.y - 5, word, { transform: `rotate(-55 ${x} ${big.y - 5})` }), wide);
  });
  if (!isOff) shade(shown, big.x, big.y, wide * columns.length, high * rows.length,
    rows.length, columns.length);
  shown.forEach((_, i) => {
    const at = big.y + i * high, chosen = i === rowShown;
    fit(ui.text(big.x - 5, at + 0.72 * high, rows[i], { "text-anchor": "end",
      "font-weight": chosen ? 650 : 400 }), high);
    const frame = ui.rect(big.x, at, wide * columns.length, high, { fill: "transparent",
      stroke: chosen ? "orange" : "grid", "stroke-width": chosen ? 2.5 : 1 });
    ui.active(frame, { key: `row-${i}`, group: "rows", label: `${rows[i]}: read where it looks`,
      press: () => { if (kindShown === "encoder") state.row = i; else state.at = i; } });
  });
}

// ------------------------------------------------- the head in numbers, for the chosen row
const numbers = ui.root.querySelector(".cw-chain");
numbers.ontoggle = () => { if (state.numbers !== numbers.open) ui.set("numbers", numbers.open); };
const table = numbers.querySelector("table");
const part = state.box ? partOf(state.box) : kindShown === "cross" ? "cross" : "attention";
const [equation, code] = PARTS[part];
numbers.hidden = !kept.model || !shown;
if (numbers.open && !numbers.hidden) {
  const three = (x) => some(x, 3).join(", ");
  const line = (cells, tag, label) => {
    const row = document.createElement("tr");
    row.append(...cells.map((words, i) => {
      const cell = document.createElement(i && !label ? "td" : tag);
      if (tag === "th") cell.scope = label || "row";
      setMath(cell, words);
      return cell;
    }));
    return row;
  };
  const fill = (heads, lines) => {
    table.tHead.replaceChildren(line(heads, "th", "col"));
    table.tBodies[0].replaceChildren(...lines.map((cells) => line(cells, "th")));
  };
  const about = [];
  if (state.box === "logits") {
    const logits = [...vectors[1][1]], odds = softmax(logits);
    fill(["word", "logit", "softmax"], ranked(odds).map(([id, share]) =>
      [show(id), logits[id].toFixed(2), chance(share)]));
  } else if (state.box) fill(["", "numbers", "length", "first 6"], vectors.map(([name, x]) =>
    [name, `${x.length}`, norm(x), `${some(x, 6).join("  ")} …`]));
  else {
    const head = chain(kept.model, tokens, soFar, state.head, rowShown, what);
    const d = head.query.length;
    fill(["key", "q·k", state.scale === 1 ? `÷ √${d}` : `÷ √${d} × ${state.scale}`, "mask",
      "softmax", "value, first 3"], head.keys.map((_, j) => [columns[j],
      head.products[j].toFixed(2), head.scores[j].toFixed(2), head.masked[j] ? "−∞" : "open",
      head.weights[j].toFixed(3), `${some(head.values[j], 3).join("  ")} …`]));
    about.push(`“${rows[rowShown]}” asks with the query q = (${three(head.query)}, … ${d} `
      + `numbers). Weights times values, summed: context (${three(head.context)}, …).${
        isOff ? " The head is off: none of this arrives." : ""}`);
  }
  setMath(numbers.querySelector("p"), [equation, ...about].join(". "));
  numbers.querySelector("pre").textContent = code;
}

// ------------------------------------------------------------------------------ in words
const missing = [
  state.off.length && `${state.off.length} of ${everyHead.length} heads${
    changes.mean ? ", their means in place" : ""}`,
  state.source && "the positions of the source",
  state.target && "the positions of the translation",
].filter(Boolean).join(", ");
const left = (missing ? ` Left out: ${missing}.` : "")
  + (state.scale === 1 ? "" : ` Scores times ${state.scale}.`);
const passes = vectors.length ? ` ${nameOf(state.box)}, for “${rows[rowShown]}”: ${vectors
  .map(([name, x]) => `${name.replace("_", " ")} has length ${norm(x)}`).join(", ")}.` : "";
const known = `I know ${[...kept.ids.keys()].filter((word) => /^\w/.test(word)).length
  } words, the owner's ’s, the comma and the full stop`;
const finished = kept.tests[testKey] && kept.tests[testKey].done === data.tested.length;
const game = !state.game ? "" : !fair ? " Game: switch heads only; positions and scale stay."
  : !finished ? " Game: testing." : ` Game: ${headsOn} heads on, ${count(testKey)}${
    kept.tests[testKey].right < goal ? `, and ${goal} are needed` : ""}.${
    kept.best ? ` Your best: ${kept.best} heads.` : ""}`;
const tests = state.game ? game : finished ? ` Test: ${count(testKey)}.` : "";
const stays = "The last translation stays.";
if (state.failed) ui.say("The model's file did not arrive; press Play to try again.");
else if (!typed.length) ui.say(`Type an English sentence. ${known}; the words `
  + `that often begin a sentence stand below the box. ${stays}${left}`);
else if (unknown.length && complete) ui.say(`${known}; ${quoted} ${unknown.length > 1 ? "are"
  : "is"} not among them. Nearest to “${strange}”: ${near.slice(0, 3).join(", ")}. ${stays}${left}`);
else if (!unknown.length && !readable) ui.say(`That is ${draft.length - 1} words, the full stop `
  + `counted; there is room for ${data.most}, and in training no sentence had more than ${
    data.longest}. ${stays}${left}`);
else if (!complete) ui.say(`A sentence is translated after its full stop, Enter, or a pause.${left}`);
else if (!result) ui.say(`The model is being loaded.${left}`);
else {
  const row = shown[kindShown === "encoder" ? state.row : state.at], order = [...row.keys()].sort((a, b) => row[b] - row[a]);
  const said = sentence(result.steps.slice(0, state.at + 1));
  const same = changed && uncutSaid === sentence(result.steps);
  const gold = goldOf(askedFor), ready = state.copied ? `${state.copied} ` : kept.model ? ""
    : "Made beforehand; the model is being loaded. ";
  const asks = `${kindShown === "encoder" ? "" : "to write it, "}“${rows[rowShown]}”`;
  const judged = !state.finished || !gold ? ""
    : said === gold ? " That is right." : ` Right is “${gold}”.`;
  const endless = state.finished && result.steps.at(-1).token !== END
    ? " There it was stopped." : "";
  const long = tokens.length - 1 > data.longest
    ? " No sentence of the training was as long as this one." : "";
  ui.say(`${ready}${said || !state.finished ? `“${said}${state.finished ? "" : " …"}”`
    : "Nothing is written"}: word ${state.at + 1} is “${written[state.at + 1]}”, with `
    + `probability ${best[0][1].toFixed(3)}.${endless}${judged}${passes
      || ` Head ${kindShown} ${+layerShown + 1}.${+headShown + 1}${isOff ? " is off"
        : `: ${asks} looks most at “${columns[order[0]]}” (${row[order[0]].toFixed(2)})`}.`}${left}${changed
      ? (same ? " The whole model writes the same."
        : ` The whole model writes “${uncutSaid}”.`) : ""}${long}${tests}`);
}
