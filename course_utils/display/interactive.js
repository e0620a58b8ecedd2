// The frame of every interactive: reads the controls into `state`, and draws again
// whenever it changes. `script(state, data, ui)` draws everything anew each time.
function courseWidget(root, data, script) {
  if (root.dataset.ready) return;
  root.dataset.ready = "yes";
  root.querySelector(".cw-asleep").remove();
  // JupyterLab takes keys as its own commands, unless the very element says no.
  const keepKeys = (element) => element.setAttribute("data-lm-suppress-shortcuts", "true");
  root.querySelectorAll("input, select, button").forEach(keepKeys);
  const stage = root.querySelector("svg"), says = root.querySelector(".cw-says");
  const strip = root.querySelector(".cw-strip");
  const controls = {}, state = {}, handles = {}, stops = {};
  const make = (tag, attributes, parent, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const key in attributes) {
      const value = attributes[key];
      if (value === undefined) continue;
      if (key === "fill" || key === "stroke") element.style[key] = ui.colour(value);
      else element.setAttribute(key, value);
    }
    if (text !== undefined) element.textContent = text;
    (parent || stage).append(element);
    return element;
  };
  const ui = {
    root,
    label: (key, words) => {
      const { element } = controls[key];
      if (element.textContent !== words) element.textContent = words;
    },
    // Words on a shade: ink up to half a colour, then light with a rim of the full colour.
    shade: 0.5,
    on: (strength, colour = "blue") => strength <= ui.shade ? {} : { fill: "surface",
      stroke: colour, "stroke-width": 2.5, "paint-order": "stroke" },
    colour: (name) => /^[a-z]+$/.test(name) ? `var(--course-${name}, ${name})` : name,
    line: (x1, y1, x2, y2, a) =>
      make("line", { x1, y1, x2, y2, stroke: "grid", ...a }),
    rect: (x, y, width, height, a) =>
      make("rect", { x, y, width: Math.max(width, 0), height: Math.max(height, 0),
        fill: "blue", ...a }),
    circle: (cx, cy, r, a) => make("circle", { cx, cy, r, fill: "blue", ...a }),
    text: (x, y, text, a) => make("text", { x, y, fill: "ink", ...a }, stage, text),
    curve: (points, a) => make("polyline", { points: points.join(" "), fill: "none",
      stroke: "blue", "stroke-width": 2, ...a }),
    path: (d, a) => make("path", { d, fill: "blue", ...a }),
    // One row of bars in the box (x, y, w, h), `top` at full height.
    bars(values, { x, y, w, h, top = 1, fill = "blue", labels }) {
      const step = w / values.length;
      ui.line(x, y + h, x + w, y + h, { stroke: "muted" });
      values.forEach((value, i) => {
        const tall = h * Math.min(value / top, 1);
        const left = x + (i + 0.14) * step;
        ui.rect(left, y + h - tall, 0.72 * step, tall, { fill });
        if (labels) ui.text(x + (i + 0.5) * step, y + h + 15, labels[i],
          { "text-anchor": "middle" });
      });
    },
    // Cells in the box (x, y, w, h), full colour at 1. `press(i, j)`: buttons.
    heatmap(matrix, { x, y, w, h, rows, columns, press, tell }) {
      const high = h / matrix.length, wide = w / matrix[0].length;
      matrix.forEach((row, i) => row.forEach((value, j) => {
        const strong = Math.min(Math.abs(value), 1);
        const box = [x + j * wide, y + i * high, wide, high];
        ui.rect(...box, { fill: value < 0 ? "orange" : "blue", "fill-opacity": strong });
        const cell = ui.rect(...box, { fill: "transparent", stroke: "grid" });
        if (press) ui.active(cell, { key: `cell-${i}-${j}`, press: () => press(i, j),
          label: tell ? tell(i, j) : `row ${i + 1}, column ${j + 1}` });
      }));
      (rows || []).forEach((label, i) => ui.text(x - 6, y + (i + 0.5) * high + 4, label,
        { "text-anchor": "end" }));
      const crowded = (columns || []).some((label) => label.length * 7.5 > wide);
      (columns || []).forEach((label, j) => {
        const left = x + (j + 0.5) * wide;
        if (crowded) ui.text(left + 4, y + h + 14, label, { "text-anchor": "end",
          transform: `rotate(-45 ${left + 4} ${y + h + 14})` });
        else ui.text(left, y + h + 16, label, { "text-anchor": "middle" });
      });
    },
    // Tokens as a strip of words above the drawing, shaded by weight.
    tokens(labels, weights) {
      strip.replaceChildren(...labels.map((label, i) => {
        const chip = document.createElement("span");
        chip.style.setProperty("--share", `${Math.round(100 * weights[i])}%`);
        chip.classList.toggle("cw-strong", weights[i] > ui.shade);
        const number = document.createElement("small");
        number.textContent = weights[i].toFixed(2);
        chip.append(label, number);
        return chip;
      }));
    },
    // Make an element a button (press) or a handle (drag to x, y), by pointer and keys.
    // Of a `group` the Tab key reaches one, and the arrows lead from it to the others.
    active(element, { key, label, press, drag, at, step = 10, group, pressed }) {
      stage.setAttribute("role", "group");
      element.setAttribute("tabindex", group ? -1 : 0);
      if (group) element.dataset.group = group;
      if (pressed !== undefined) element.setAttribute("aria-pressed", pressed);
      element.setAttribute("role", "button");
      element.setAttribute("aria-label", label);
      keepKeys(element);
      element.dataset.key = key;
      element.dataset.act = drag ? "drag" : "press";
      handles[key] = { press, drag, at, step };
    },
    // Words to press below a text box: `write(word)` is what then stands in it.
    suggest(key, title, words, write) {
      const row = controls[key].row, inside = row.contains(document.activeElement);
      row.onclick = ({ target }) => {
        if (target.type === "button") ui.set(key, write(target.textContent));
      };
      if (row.dataset.words === `${title} ${words}`) return;
      row.dataset.words = `${title} ${words}`;
      row.replaceChildren(title, ...words.map((word) => {
        const press = document.createElement("button");
        press.type = "button";
        keepKeys(press);
        press.textContent = word;
        return press;
      }));
      if (inside) (row.querySelector("button") || controls[key].element).focus({ preventScroll: true });
    },
    say: (text) => { if (says.textContent !== text) says.textContent = text; },
    set(key, value) {
      state[key] = value;
      if (controls[key]) controls[key].write(value);
      redraw();
    },
    // as `set`, but nothing is drawn
    write(key, value) { controls[key].write(value); },
    softmax(scores) {
      const largest = Math.max(...scores);
      const powers = scores.map((score) => Math.exp(score - largest));
      const total = powers.reduce((sum, power) => sum + power, 0);
      return powers.map((power) => power / total);
    },
    // Numbers from 0 to 1 from a seed: the same on every machine (mulberry32).
    uniforms(seed) {
      let s = seed >>> 0;
      return () => {
        s = (s + 0x6d2b79f5) | 0;
        let t = Math.imul(s ^ (s >>> 15), 1 | s);
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
      };
    },
    // Normal numbers from a seed (Box-Muller).
    normals(seed) {
      const uniform = ui.uniforms(seed);
      return () => Math.sqrt(-2 * Math.log(1 - uniform()))
        * Math.cos(2 * Math.PI * uniform());
    },
  };
  // One stop for each group: where the reader was last, or its first element.
  function stopOnce() {
    const seen = {};
    stage.querySelectorAll("[data-group]").forEach((element) => {
      const { group, key } = element.dataset;
      if (!seen[group] || key === stops[group]) seen[group] = element;
    });
    Object.values(seen).forEach((element) => { element.setAttribute("tabindex", 0); });
  }
  // The nearest element of a group in the direction of an arrow.
  function neighbour(from, [right, down]) {
    const middle = (element) => {
      const box = element.getBoundingClientRect();
      return [box.left + box.width / 2, box.top + box.height / 2];
    };
    const [x, y] = middle(from);
    const far = (element) => {
      const [dx, dy] = middle(element).map((at, i) => at - [x, y][i]);
      const along = dx * right + dy * down, across = Math.abs(dx * down) + Math.abs(dy * right);
      return along < 2 || across > 2 * along ? Infinity : along + 3 * across;
    };
    return [...stage.querySelectorAll(`[data-group="${from.dataset.group}"]`)]
      .map((element) => [far(element), element]).filter(([away]) => away < Infinity)
      .sort((a, b) => a[0] - b[0]).map(([, element]) => element)[0];
  }
  function redraw() {
    const focused = stage.contains(document.activeElement)
      && document.activeElement.dataset.key;
    stage.replaceChildren();
    for (const key in handles) delete handles[key];
    ui.width = stage.clientWidth || 600;
    ui.height = stage.clientHeight;
    stage.setAttribute("viewBox", `0 0 ${ui.width} ${ui.height}`);
    script(state, data, ui);
    stopOnce();
    says.style.minHeight = `${says.offsetHeight}px`;
    root.dataset.state = JSON.stringify(state);
    if (focused) {
      const again = stage.querySelector(`[data-key="${focused}"]`);
      if (again) again.focus({ preventScroll: true });
    }
  }
  root.querySelectorAll("[data-control]").forEach((element) => {
    const key = element.dataset.control, kind = element.dataset.kind;
    const values = JSON.parse(element.dataset.values || "[]");
    const output = kind === "slider" && element.parentElement.querySelector("output");
    const inputs = kind === "tokens" ? [...element.querySelectorAll("input")] : [element];
    const read = {
      slider: () => values[+element.value], select: () => element.value,
      text: () => element.value,
      toggle: () => element.checked, button: () => state[key] || 0,
      tokens: () => inputs.findIndex((input) => input.checked),
    }[kind];
    const write = {
      slider: (value) => { element.value = values.indexOf(value); },
      select: (value) => { element.value = value; },
      text: (value) => { element.value = value; },
      toggle: (value) => { element.checked = value; }, button: () => {},
      tokens: (value) => { inputs[value].checked = true; },
    }[kind];
    const changed = () => {
      state[key] = read();
      if (output) {
        output.textContent = state[key];
        element.setAttribute("aria-valuetext", `${state[key]}`);
      }
    };
    controls[key] = { write: (value) => { write(value); changed(); }, element,
      row: kind === "text" && element.parentElement.nextElementSibling };
    changed();
    if (kind === "button") {
      element.addEventListener("click", () => { state[key] += 1; redraw(); });
    } else {
      const event = kind === "slider" || kind === "text" ? "input" : "change";
      element.addEventListener(event, () => { changed(); redraw(); });
      if (kind === "text") element.addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        state[`${key}Entered`] = state[key];
        redraw();
      });
    }
  });
  const handle = (event) => {
    const near = event.target.closest && event.target.closest("[data-key]");
    return near && handles[near.dataset.key];
  };
  let dragged = null;
  stage.addEventListener("pointerdown", (event) => {
    const found = handle(event);
    if (!found || !found.drag) return;
    dragged = event.target.closest("[data-key]").dataset.key;
    stage.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  stage.addEventListener("pointermove", (event) => {
    if (!dragged || !handles[dragged]) return;
    const box = stage.getBoundingClientRect();
    handles[dragged].drag(event.clientX - box.left, event.clientY - box.top);
    redraw();
  });
  ["pointerup", "pointercancel"].forEach((name) =>
    stage.addEventListener(name, () => { dragged = null; }));
  stage.addEventListener("click", (event) => {
    const found = handle(event);
    if (found && found.press) { found.press(); redraw(); }
  });
  // (on the root: with this listener an SVG itself would be a stop)
  root.addEventListener("focusin", ({ target }) => {
    const { group, key } = target.dataset;
    if (!group || stops[group] === key) return;
    stops[group] = key;
    stage.querySelectorAll(`[data-group="${group}"]`).forEach((element) =>
      element.setAttribute("tabindex", element === target ? 0 : -1));
  });
  stage.addEventListener("keydown", (event) => {
    const found = handle(event);
    if (!found) return;
    const own = event.target.closest("[data-key]");
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1],
      ArrowDown: [0, 1] }[event.key];
    if (found.press && (event.key === "Enter" || event.key === " ")) found.press();
    else if (found.drag && move) found.drag(
      found.at[0] + move[0] * found.step, found.at[1] + move[1] * found.step);
    else if (own.dataset.group && move) {
      event.preventDefault();
      const next = neighbour(own, move);
      if (next) next.focus();
      return;
    } else return;
    event.preventDefault();
    redraw();
  });
  // The first drawing waits until a page that is still being read has nothing else to do.
  const begin = () => {
    redraw();
    if (!window.ResizeObserver) return;
    let width = stage.clientWidth;
    new ResizeObserver(() => {
      if (stage.clientWidth === width) return;
      width = stage.clientWidth;
      says.style.minHeight = "";
      redraw();
    }).observe(stage);
  };
  if (document.readyState === "loading" && window.requestIdleCallback) {
    requestIdleCallback(begin, { timeout: 500 });
  } else begin();
}
