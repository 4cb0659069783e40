// The viewer: what the address says (#trace=7&stage=fuse&inst=12, #source=3&line=41, nothing: the overview) is shown. No library, no network.
"use strict";
const data = JSON.parse(document.getElementById("overview").textContent);
const byId = new Map(data.traces.map(trace => [trace.id, trace]));
const linesOf = new Map();  // file -> line -> row
for (const row of data.lines) {
  if (!linesOf.has(row[0])) linesOf.set(row[0], new Map());
  linesOf.get(row[0]).set(row[1], row);
}
const PARTS = [["kernel", "kernels"], ["library", "library"], ["residual", "residual calls"], ["tensor", "tensors made and read"], ["guards", "guards, numbers"], ["end", "ends of iterations"], ["inout", "in and out"]];
const PART_COLOURS = {start: "#7b8794", imports: "#b28c5c", interpreter: "#d0493f", recording: "#c79a00", compiling: "#8a4fd0", cache: "#7b8794", traces: "#2e9e5b", gc: "#2878c8", profile: "#9aa5b1", finish: "#7b8794"};
const view = document.getElementById("view"), tree = document.getElementById("tree"), search = document.getElementById("search");

// --- small things

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined && value !== null) element.setAttribute(key, value);
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}
const base = file => file < 0 ? "?" : data.files[file].split("/").pop();
const fileOf = place => place[0] < 0 ? -1 : data.codes[place[0]].file;
const where = place => `${base(fileOf(place))}:${place[2]}`;
const ms = value => value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(3);
const percent = share => share === null || share === undefined ? "-" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
const bytes = n => n >= 1 << 20 ? `${(n / (1 << 20)).toFixed(1)} MiB` : n >= 1024 ? `${(n / 1024).toFixed(1)} KiB` : `${n} B`;
const count = n => n >= 1e9 ? `${(n / 1e9).toFixed(1)} G` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : n >= 1e4 ? `${(n / 1e3).toFixed(1)} k` : `${n}`;
const hash = parameters => "#" + Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null).map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&");
const link = (parameters, text, attributes = {}) => make("a", {href: hash(parameters), ...attributes}, text);
const placeLink = place => data.sources.includes(fileOf(place)) ? link({source: fileOf(place), line: place[2]}, where(place)) : make("span", {title: fileOf(place) < 0 ? "" : data.files[fileOf(place)]}, where(place));

function address() {
  return Object.fromEntries(location.hash.slice(1).split("&").filter(Boolean).map(part => part.split("=").map(decodeURIComponent)));
}

const opened = new Map();
function open(id, isText = false) {
  if (!opened.has(id)) {
    const element = document.getElementById(id);
    opened.set(id, element === null ? Promise.resolve(null) : (async () => {
      const packed = Uint8Array.from(atob(element.textContent), c => c.charCodeAt(0));
      const text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
      return isText ? text : JSON.parse(text);
    })());
  }
  return opened.get(id);
}

function table(heads, rows) {
  const isNumber = rows.length ? rows[0].map(cell => typeof cell === "number" || (typeof cell === "string" && /^[\d.,]+( %| [kMG]| KiB| MiB| B)?$/.test(cell))) : [];
  return make("table", {}, make("tr", {}, ...heads.map((head, k) => make("th", {class: isNumber[k] ? "n" : null}, head))),
    ...rows.map(row => make("tr", {}, ...row.map((cell, k) => make("td", {class: isNumber[k] ? "n" : null}, typeof cell === "number" ? String(cell) : cell)))));
}

function spentOf(trace) {
  return {...trace.spent, guards: trace.guards_ms, inout: trace.entry_ms + trace.exit_ms};
}
function bar(trace) {
  const spent = spentOf(trace), all = trace.ms || 1;
  return make("div", {class: "bar"}, ...PARTS.filter(([key]) => spent[key]).map(([key, name]) =>
    make("span", {style: `width:${100 * spent[key] / all}%;background:var(--${key})`, title: `${name}: ${ms(spent[key])} ms, ${percent(spent[key] / all)}`})));
}
const legend = () => make("div", {class: "legend faint"}, ...PARTS.flatMap(([key, name]) => [make("span", {style: `background:var(--${key})`}), name]));

// --- the tree of traces: roots, below each its exits, below an exit the side traces that go on there

const parentOf = new Map();
for (const trace of data.traces)
  for (const exit of trace.exits) for (const [to] of exit.to) if (byId.has(to) && byId.get(to).kind === "side" && to !== trace.id && !parentOf.has(to)) parentOf.set(to, trace.id);
function isBelow(id, ancestor) {
  for (let seen = new Set(); id !== undefined && !seen.has(id); id = parentOf.get(id)) {
    if (id === ancestor) return true;
    seen.add(id);
  }
  return false;
}
for (const [to, from] of [...parentOf]) if (isBelow(from, to)) parentOf.delete(to);
const order = [];
function exitText(exit) {
  return `${exit.count} × ${where(exit.place)} ${exit.what} ${exit.sentence}`;
}
function drawTree() {
  const list = document.createDocumentFragment();
  const add = (trace, depth) => {
    order.push(trace.id);
    const indent = 8 + 14 * depth;
    list.append(make("a", {href: hash({trace: trace.id}), style: `padding-left:${indent}px`, "data-trace": trace.id, title: `${data.files[fileOf(trace.place)] ?? ""} ${trace.function}`},
      make("i", {}, `${ms(trace.ms)} ms`), make("b", {}, `${trace.id} `), `${trace.kind} ${where(trace.begin)} ${trace.function}`));
    const exits = [...trace.exits].sort((a, b) => b.count - a.count);
    for (const exit of exits.slice(0, 8)) {
      list.append(make("a", {class: "exit", href: hash({trace: trace.id, inst: exit.inst}), style: `padding-left:${indent + 14}px`, title: exitText(exit)}, "↳ " + exitText(exit)));
      for (const [to, times] of exit.to) {
        if (!byId.has(to)) continue;
        if (parentOf.get(to) === trace.id && !order.includes(to)) add(byId.get(to), depth + 2);
        else list.append(make("a", {class: "exit", href: hash({trace: to}), style: `padding-left:${indent + 28}px`}, `${times} × to trace ${to}`));
      }
    }
    for (const exit of exits.slice(8)) for (const [to] of exit.to) if (parentOf.get(to) === trace.id && !order.includes(to)) add(byId.get(to), depth + 2);
  };
  for (const trace of data.traces) if (!parentOf.has(trace.id)) add(trace, 0);
  for (const trace of data.traces) if (!order.includes(trace.id)) add(trace, 0);
  tree.replaceChildren(list);
}

// --- the overview

function advice() {
  return make("ul", {class: "advice"}, ...data.advice.map(finding => {
    const pieces = finding.text.split(/(trace \d+)/).map(piece => {
      const number = /^trace (\d+)$/.exec(piece);
      return number && byId.has(+number[1]) ? link({trace: number[1]}, piece) : piece;
    });
    return make("li", {}, ...pieces, " ", finding.place ? placeLink(finding.place) : "");
  }));
}
function showOverview() {
  const rows = data.top.map(([file, line, text]) => [linesOf.get(file).get(line), text]);
  const traces = [...data.traces].sort((a, b) => b.ms - a.ms).slice(0, 200);
  view.replaceChildren(make("h2", {}, "Advice"), data.advice.length ? advice() : make("p", {class: "faint"}, "Nothing stands out."),
    make("h2", {}, "Source lines, with what they call"),
    table(["ms", "", "state", "line", "", "exits", "traces"], rows.map(([[file, line, state, , total, exits, traces], text]) => [ms(total), percent(total / data.wall), make("span", {}, make("span", {class: state, style: "display:inline-block;width:8px;height:8px;margin-right:6px"}), state),
      placeLinkOf(file, line), make("code", {}, text), exits, make("span", {}, ...traces.slice(0, 8).flatMap(id => [link({trace: id}, String(id)), " "]))])),
    make("h2", {}, "Traces"), legend(),
    table(["trace", "ms", "", "iterations", "exits", "", "where"], traces.map(trace => [link({trace: trace.id}, String(trace.id)), ms(trace.ms), percent(trace.ms / data.wall), trace.iterations,
      trace.exits.reduce((sum, exit) => sum + exit.count, 0), bar(trace), make("span", {}, placeLink(trace.begin), ` ${trace.function}`)])),
    make("h2", {}, "Sources"), make("p", {}, ...data.sources.filter(file => data.own[file] || [...(linesOf.get(file) ?? new Map()).values()].some(row => row[6].length))
      .flatMap(file => [link({source: file}, data.own[file] ? base(file) : data.files[file].split("/").slice(-2).join("/"), {title: data.files[file]}), " "])));
}
const placeLinkOf = (file, line) => data.sources.includes(file) ? link({source: file, line}, `${base(file)}:${line}`) : make("span", {title: data.files[file]}, `${base(file)}:${line}`);

// --- code panes: each line knows its place (code, unit, line) and instruction; choosing one marks what belongs to it in the others

function codeLine(number, text, options = {}) {
  const row = make("div", {}, options.state !== undefined ? make("span", {class: `state ${options.state}`}) : null, make("span", {class: "no"}, String(number)),
    options.time !== undefined ? make("span", {class: "ms"}, options.time) : null, make("span", {class: options.kind ? `k-${options.kind}` : null}, text));
  if (options.title) row.title = options.title;
  return row;
}

async function sourceRows(file, spent) {
  const text = data.sources.includes(file) ? await open(`source-${file}`, true) : null;
  if (text === null) return [codeLine("", "(the source is not kept)")];
  const known = linesOf.get(file) ?? new Map();
  return text.split("\n").map((line, k) => {
    const row = known.get(k + 1);
    const own = spent ? spent.get(`${file}:${k + 1}`) : row && row[4];
    const element = codeLine(k + 1, line, {state: row ? (row[5] ? "exits" : row[2]) : "", time: own ? ms(own) : "", title: row ? `${row[2]}${row[5] ? `, ${row[5]} exits` : ""}` : ""});
    element.key = {file, line: k + 1};
    return element;
  });
}

class Panes {
  constructor(trace, detail, bytecode) {
    Object.assign(this, {trace, detail, bytecode, panes: []});
    this.spent = new Map();  // of the trace, by line
    for (const inst of detail.insts) {
      if (inst.ms === undefined || inst.place < 0) continue;
      const lines = new Set();  // with those of the calls that led there, each once
      for (let at = inst.place; at >= 0; at = detail.places[at][3]) lines.add(`${fileOf(detail.places[at])}:${detail.places[at][2]}`);
      for (const key of lines) this.spent.set(key, (this.spent.get(key) ?? 0) + inst.ms);
    }
    this.files = [...new Set([fileOf(trace.place), ...detail.places.map(fileOf)])].filter(file => data.sources.includes(file));
    this.codes = [...new Set([trace.place[0], ...detail.places.map(place => place[0])])].filter(code => code >= 0);
    this.stages = detail.stages.map((stage, k) => [k, stage.name]).concat(detail.kernels.map((kernel, k) => [`k${k}`, `kernel ${k} ${kernel.name}`]));
    const ir = detail.stages.filter(stage => stage.name !== "assembly");
    const assembly = detail.stages.findIndex(stage => stage.name === "assembly");
    this.element = make("div", {class: "panes"});
    this.source = this.add("source", this.files.map(file => [file, base(file)]), file => sourceRows(+file, this.spent));
    this.code = this.add("bytecode", this.codes.map(code => [code, data.codes[code].name]), async code => this.bytecodeRows(+code), "narrow");
    this.first = this.add("IR", this.stages, async stage => this.stageRows(stage));
    this.second = this.add("IR after", this.stages, async stage => this.stageRows(stage));
    this.third = this.add("code", this.stages, async stage => this.stageRows(stage));
    this.defaults = [0, Math.max(0, ir.length - 1), assembly < 0 ? Math.max(0, ir.length - 1) : assembly];
  }
  add(title, choices, rows, style = "") {
    const select = make("select", {"aria-label": title}, ...choices.map(([value, name]) => make("option", {value}, name)));
    const code = make("div", {class: "code"});
    const pane = {select, code, rows, show: async value => {
      if (value !== undefined && String(value) !== pane.shown) {
        select.value = String(value);
        pane.shown = String(value);
        code.replaceChildren(...await rows(value));
        code.scrollTop = 0;
      }
    }};
    select.addEventListener("change", async () => { await pane.show(select.value); this.mark(); });
    code.addEventListener("click", event => {
      const row = event.target.closest(".code > div");
      if (row && row.key) this.choose(row.key, pane);
    });
    this.panes.push(pane);
    this.element.append(make("div", {class: `pane ${style}`}, make("h4", {}, `${title} `, select), code));
    return pane;
  }
  keyOf(place, inst) {
    const at = place >= 0 ? this.detail.places[place] : null;
    if (at === null && !(inst >= 0)) return null;
    return at === null ? {inst} : {file: fileOf(at), line: at[2], code: at[0], unit: at[1], inst: inst >= 0 ? inst : undefined};
  }
  bytecodeRows(code) {
    return (this.bytecode[code] ?? []).map(([unit, line, text]) => {
      const row = codeLine(unit, text, {title: `line ${line}`});
      row.key = {file: data.codes[code].file, line, code, unit};
      return row;
    });
  }
  stageRows(name) {
    if (String(name).startsWith("k")) {
      const kernel = this.detail.kernels[+name.slice(1)];
      return `${kernel.text}\n\n${kernel.code}`.split("\n").map((line, k) => codeLine(k + 1, line));
    }
    const stage = this.detail.stages[+name], last = stage.name === "assembly" || +name === this.lastIr();
    const lines = stage.text.split("\n");
    if (lines[lines.length - 1] === "") lines.pop();
    return lines.map((line, k) => {
      const inst = last ? this.detail.insts[stage.insts[k]] : undefined;
      const isAssembly = stage.name === "assembly";
      const row = codeLine(k, line, {time: last && !isAssembly ? (inst && inst.ms !== undefined ? ms(inst.ms) : "") : undefined, kind: inst && !isAssembly ? inst.kind : undefined,
        title: inst && inst.runs ? `${inst.runs} runs, ${(1000 * inst.ms / inst.runs).toFixed(2)} µs each` : undefined});
      row.key = this.keyOf(stage.places[k], last ? stage.insts[k] : -1);
      return row;
    });
  }
  lastIr() {
    return this.detail.stages.reduce((found, stage, k) => stage.name === "assembly" ? found : k, 0);
  }
  async choose(key, from = null) {
    this.key = key;
    if (key.file !== undefined && this.files.includes(key.file) && from !== this.source) await this.source.show(key.file);
    if (key.code !== undefined && from !== this.code) await this.code.show(key.code);
    this.mark(from);
  }
  belongs(row, key) {
    if (!row || !key) return false;
    if (key.inst !== undefined && row.inst !== undefined) return row.inst === key.inst;
    if (key.unit !== undefined && row.unit !== undefined && row.code === key.code) return row.unit === key.unit || (key.inst === undefined && row.inst !== undefined && row.line === key.line);
    return key.file !== undefined && row.file === key.file && row.line === key.line;
  }
  mark(from = null) {
    if (!this.key) return;
    for (const pane of this.panes) {
      let first = null;
      for (const row of pane.code.children) {
        const on = this.belongs(row.key, this.key);
        row.classList.toggle("linked", on);
        if (on && first === null) first = row;
      }
      if (first !== null && pane !== from) pane.code.scrollTop = first.offsetTop - pane.code.offsetTop - pane.code.clientHeight / 3;
    }
  }
}

// --- a kernel's graph: nodes by depth, memory at the top and bottom

function graph(kernel) {
  const depth = [], used = new Set();
  kernel.nodes.forEach((node, k) => { depth[k] = node.args.length ? 1 + Math.max(...node.args.map(arg => depth[arg])) : 0; });
  kernel.nodes.forEach((node, k) => node.args.forEach(arg => { if (!kernel.nodes[arg].args.length) depth[arg] = used.has(arg) ? Math.min(depth[arg], depth[k] - 1) : depth[k] - 1; used.add(arg); }));  // beside what they are for
  const rows = [];
  kernel.nodes.forEach((node, k) => (rows[depth[k]] ??= []).push(k));
  const isNumber = k => !kernel.nodes[k].args.length && !kernel.nodes[k].op.startsWith("load");
  for (const row of rows) row.sort((a, b) => isNumber(a) - isNumber(b) || a - b);
  const width = 150, height = 24, gap = 26, at = [];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const draw = (tag, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    svg.append(element);
    return element;
  };
  rows.forEach((row, y) => row.forEach((k, x) => { at[k] = [x * (width + 12), y * (height + gap)]; }));
  kernel.nodes.forEach((node, k) => node.args.forEach(arg => {
    const [x0, y0] = at[arg], [x1, y1] = at[k];
    draw("path", {d: `M${x0 + width / 2} ${y0 + height} C${x0 + width / 2} ${y0 + height + gap / 2} ${x1 + width / 2} ${y1 - gap / 2} ${x1 + width / 2} ${y1}`});
  }));
  kernel.nodes.forEach((node, k) => {
    const [x, y] = at[k];
    const kind = /^(load|store)/.test(node.op) ? "memory" : /^reduce/.test(node.op) ? "reduce" : "";
    draw("rect", {x, y, width, height, rx: 4, class: kind});
    draw("title", {}, node.op);
    draw("text", {x: x + 6, y: y + 16}, node.op.length > 22 ? node.op.slice(0, 21) + "…" : node.op);
  });
  const wide = Math.max(...rows.map(row => row.length), 1) * (width + 12);
  svg.setAttribute("width", wide);
  svg.setAttribute("height", rows.length * (height + gap));
  svg.setAttribute("viewBox", `-2 -2 ${wide + 4} ${rows.length * (height + gap) + 4}`);
  return make("div", {class: "graph"}, svg);
}

// --- a trace

let panes = null;
async function showTrace(at) {
  const trace = byId.get(+at.trace);
  if (!trace) return showMissing(`There is no trace ${at.trace}.`);
  const [detail, bytecode] = await Promise.all([open(`trace-${trace.id}`), open("bytecode")]);
  panes = new Panes(trace, detail, bytecode);
  const exits = [...trace.exits].sort((a, b) => b.count - a.count);
  const kernels = detail.kernels.map((kernel, k) => [link({trace: trace.id, kernel: k}, `${k} ${kernel.name}`), ms(kernel.ms), kernel.runs, kernel.runs ? (1000 * kernel.ms / kernel.runs).toFixed(2) : "-",
    bytes(kernel.bytes_read + kernel.bytes_written), count(kernel.flops), percent(kernel.roof), kernel.device, make("span", {}, ...[...new Set(kernel.places.map(place => where(detail.places[place])))].slice(0, 6).flatMap(text => [text, " "]))]);
  const from = data.traces.flatMap(other => other.exits.flatMap(exit => exit.to.filter(([to]) => to === trace.id).map(([, times]) => [other, exit, times])));
  const chosen = detail.kernels[+at.kernel];
  view.replaceChildren(
    make("h2", {}, `Trace ${trace.id}: ${trace.kind} `, placeLink(trace.begin), ` ${trace.function}`),
    make("div", {class: "faint"}, `${trace.iterations} iterations, entered ${trace.entries} times, ${ms(trace.ms)} ms (${percent(trace.ms / data.wall)}); ` +
      `${trace.from_cache ? "from the cache" : trace.for_sizes ? "made for other sizes" : `recorded in ${ms(trace.record_ms)} ms`}, compiled in ${ms(trace.compile_ms)} ms; --log calls it ${trace.number}`),
    bar(trace), legend(),
    make("details", {}, make("summary", {}, `${exits.length} exits, ${detail.kernels.length} kernels`),
      exits.length ? table(["times", "share", "place", "because", "seen", "goes to"], exits.map(exit => [link({trace: trace.id, inst: exit.inst}, String(exit.count)), percent(exit.share), placeLink(exit.place), `${exit.what} ${exit.sentence}`,
        exit.values.join(", "), make("span", {}, ...exit.to.flatMap(([to]) => [link({trace: to}, String(to)), " "]))])) : "",
      from.length ? make("p", {}, "entered from ", ...from.flatMap(([other, exit, times]) => [link({trace: other.id, inst: exit.inst}, `trace ${other.id}, ${times} times`), " "])) : "",
      kernels.length ? table(["kernel", "ms", "runs", "µs each", "bytes moved", "FLOPs", "of the roofline", "device", "from"], kernels) : ""),
    ...(chosen ? [make("h3", {}, `Kernel ${at.kernel} ${chosen.name}: ${bytes(chosen.bytes_read)} read, ${bytes(chosen.bytes_written)} written, ${count(chosen.flops)} FLOPs, ${percent(chosen.roof)} of the roofline`), graph(chosen)] : []),
    panes.element);
  if (chosen) view.querySelector("details").open = true;
  await panes.source.show(fileOf(trace.place));
  await panes.code.show(trace.place[0]);
  const stage = detail.stages.findIndex(known => known.name === at.stage);
  await panes.first.show(panes.defaults[0]);
  await panes.second.show(stage >= 0 ? stage : panes.defaults[1]);
  await panes.third.show(chosen ? `k${at.kernel}` : panes.defaults[2]);
  const inst = detail.insts[+at.inst];
  if (inst) await panes.choose(panes.keyOf(inst.place, +at.inst));
  else await panes.choose({file: fileOf(trace.place), line: trace.place[2]});
}

async function showSource(at) {
  const file = +at.source;
  if (!data.sources.includes(file)) return showMissing("That source is not kept.");
  const code = make("div", {class: "code"}, ...await sourceRows(file, null));
  const states = ["compiled", "recorded", "interpreted", "exits"];
  const traces = [...new Set([...(linesOf.get(file) ?? new Map()).values()].flatMap(row => row[6]))];
  view.replaceChildren(make("h2", {}, data.files[file]), make("div", {class: "legend faint"}, ...states.flatMap(state => [make("span", {class: state}), state])),
    make("p", {}, traces.length ? "traces " : "no traces", ...traces.slice(0, 60).flatMap(id => [link({trace: id}, String(id)), " "])), make("div", {class: "pane"}, code));
  const row = code.children[+at.line - 1];
  if (row) {
    row.classList.add("linked");
    row.scrollIntoView({block: "center"});
  }
  code.addEventListener("click", event => {
    const key = event.target.closest(".code > div")?.key, known = key && linesOf.get(file)?.get(key.line);
    if (known && known[6].length) location.hash = hash({trace: known[6][0]});
  });
}
function showMissing(text) {
  view.replaceChildren(make("p", {class: "missing"}, text));
}

// --- addresses, search, keys

async function route() {
  const at = address();
  panes = null;
  if (at.trace !== undefined) await showTrace(at);
  else if (at.source !== undefined) await showSource(at);
  else showOverview();
  for (const entry of tree.querySelectorAll("a.chosen")) entry.classList.remove("chosen");
  const entry = at.trace !== undefined ? tree.querySelector(`a[data-trace="${CSS.escape(at.trace)}"]`) : null;
  if (entry) {
    entry.classList.add("chosen");
    entry.scrollIntoView({block: "nearest"});
  }
  find();
  document.documentElement.dataset.shown = location.hash || "#";
}
function find() {
  const wanted = search.value.toLowerCase();
  const matches = element => wanted !== "" && element.textContent.toLowerCase().includes(wanted);
  for (const entry of tree.children) entry.classList.toggle("hidden", wanted !== "" && !matches(entry));
  let first = null;
  for (const row of view.querySelectorAll(".code > div, tr")) {
    const on = matches(row);
    row.classList.toggle("found", on);
    if (on && first === null) first = row;
  }
  if (first !== null) first.scrollIntoView({block: "nearest"});
}
function step(by) {
  const now = order.indexOf(+address().trace);
  const next = order[now < 0 ? 0 : Math.min(order.length - 1, Math.max(0, now + by))];
  if (next !== undefined) location.hash = hash({trace: next});
}
function stepStage(by) {
  if (panes === null) return;
  const now = panes.stages.findIndex(([value]) => String(value) === panes.second.shown);
  const next = panes.stages[Math.min(panes.stages.length - 1, Math.max(0, now + by))];
  panes.second.show(next[0]).then(() => panes.mark());
}
function setDark(on) {
  document.documentElement.classList.toggle("dark", on);
  try { localStorage.setItem("dynvm-dark", on ? "1" : "0"); } catch { /* a file may have no storage */ }
}
const keys = {"/": () => search.focus(), j: () => step(1), k: () => step(-1), o: () => { location.hash = "#"; }, d: () => setDark(!document.documentElement.classList.contains("dark")),
  "[": () => stepStage(-1), "]": () => stepStage(1), "?": () => document.getElementById("keys").showModal(),
  s: () => { const trace = byId.get(+address().trace); if (trace) location.hash = hash({source: fileOf(trace.place), line: trace.place[2]}); }};
document.addEventListener("keydown", event => {
  if (event.key === "Escape" && document.activeElement === search) { search.value = ""; search.blur(); find(); return; }
  if (event.target === search || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
search.addEventListener("input", find);
document.getElementById("dark").addEventListener("click", keys.d);
document.getElementById("help").addEventListener("click", keys["?"]);
window.addEventListener("hashchange", route);

let stored = null;
try { stored = localStorage.getItem("dynvm-dark"); } catch { /* none */ }
document.documentElement.classList.toggle("dark", stored === null ? matchMedia("(prefers-color-scheme: dark)").matches : stored === "1");
document.getElementById("program").textContent = `${data.program.command ?? ""}: ${ms(data.wall)} ms, ${data.traces.length} traces, Python ${data.program.python ?? ""}, torch ${data.program.torch ?? ""}`;
document.getElementById("parts").replaceChildren(...Object.entries(data.parts).filter(([, value]) => value > 0).map(([name, value]) =>
  make("span", {style: `width:${100 * value / data.wall}%;background:${PART_COLOURS[name] ?? "#7b8794"}`, title: `${name}: ${ms(value)} ms, ${percent(value / data.wall)}`}, value > 0.06 * data.wall ? name : "")));
drawTree();
route().then(() => { document.documentElement.dataset.ready = performance.now().toFixed(1); });
