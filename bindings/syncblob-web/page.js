// The page passes chosen files to the worker, which runs the command, and shows the command's output.
"use strict";

const at = (id) => document.getElementById(id);

// The largest model: WebAssembly has at most 4 GiB of memory, and a browser's Blobs about as much.
// The largest report: the page loads a report as one string.
const MOST = 2 * 2 ** 30;
const MOST_SHOWN = 64 * 2 ** 20;

const state = { model: null, net: null, worker: null, parts: null, busy: null, links: [] };

// --- parts of the page: inside the single file, or separate files on a server

async function partsOfPage() {
  const inside = at("parts");
  if (!inside) return { script: "worker.js", wasm: await (await fetch("syncblob.wasm")).arrayBuffer() };
  const [size, program] = inside.dataset.sizes.split(" ").map(Number);
  const all = unpacked(bytesOf(inside.textContent), size + program);
  inside.remove();
  const script = new Blob([all.subarray(0, size)], { type: "text/javascript" });
  return { script: URL.createObjectURL(script), wasm: all.slice(size) };
}

// --- the command

async function start() {
  state.parts ??= await partsOfPage();
  const worker = new Worker(state.parts.script);
  await new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => (data.ready ? resolve() : reject(new Error(data.failure)));
    worker.onerror = (event) => reject(new Error(event.message || "the worker does not start"));
    worker.postMessage({ wasm: state.parts.wasm });
  });
  state.worker = worker;
}

class Cancelled extends Error {}

// Runs the command; resolves with its exit code, output and errors.
async function command(args, files, output) {
  if (!state.worker) await start();
  const total = files.reduce((sum, file) => sum + file.size, 0);
  return new Promise((resolve, reject) => {
    state.busy = { reject };
    state.worker.onerror = (event) => reject(new Error(event.message));
    state.worker.onmessage = ({ data }) => {
      if (data.done) {
        state.busy = null;
        resolve(data);
      } else if (total > 0) {
        at("progress").max = total;
        at("progress").value = Math.min(Math.max(data.read, data.written), total);
      }
    };
    state.worker.postMessage({ args, files, output });
  });
}

function cancel() {
  const busy = state.busy;
  if (!busy) return;
  state.worker.terminate();
  state.worker = state.busy = null;
  busy.reject(new Cancelled());
}

// --- output

function announce(text) {
  at("status").textContent = text;
}

function work(text) {
  announce(text);
  const is = Boolean(text) && text.endsWith("…");
  at("progress").hidden = at("cancel").hidden = !is;
  at("progress").removeAttribute("value");
  for (const button of at("save").querySelectorAll("button")) button.disabled = is;
}

function element(name, text, properties = {}) {
  return Object.assign(document.createElement(name), { textContent: text, ...properties });
}

// Returns the parts of a name, with a possible line break after each ".", "_" and "-".
function breakable(name) {
  return name.split(/(?<=[._-])/).flatMap((part) => [part, document.createElement("wbr")]);
}

function size(bytes) {
  const units = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const [unit, name] = units.find(([least]) => bytes >= least) ?? [1, "bytes"];
  return `${(bytes / unit).toLocaleString("en", { maximumFractionDigits: 1 })} ${name}`;
}

// Shows the command's errors. If the browser cannot run the command, also shows the line to type.
function refuse(title, result, typed) {
  const box = at("refusal");
  const parts = [element("p", ""), element("pre", result.err.trimEnd())];
  parts[0].append(element("strong", title));
  if (result.failure) {
    parts[1].textContent = (result.err || result.failure).trimEnd();
    parts.push(element("p", "A browser cannot do this. Type in a terminal instead:"), element("pre", typed));
  }
  box.replaceChildren(...parts);
  box.hidden = false;
}

const quoted = (name) => (/^[\w./+@-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`);
const typed = (args) => ["syncblob", ...args].map(quoted).join(" ");
const path = (file) => (file.name.startsWith("-") ? `./${file.name}` : file.name);

// Runs the command on the files and shows the status `words`. If it fails, shows why and returns null.
async function attempt(words, title, args, files, output, codes = [0]) {
  work(`${words} …`);
  const result = await command(args, files, output);
  if (codes.includes(result.code) && !result.failure) return result;
  refuse(title, result, typed(args));
  return null;
}

// Returns the first of "stem.kind", "stem (1).kind" … that is not the name of a chosen file.
function freeName(stem, kind, files) {
  const isTaken = (name) => files.some((file) => file.name === name);
  let name = `${stem}.${kind}`;
  for (let i = 1; isTaken(name); i++) name = `${stem} (${i}).${kind}`;
  return name;
}

function isNet(file) {
  return /\.(prototxt|pbtxt|txt)$/i.test(file.name);
}

async function open(files) {
  cancel();
  const nets = files.filter(isNet), models = files.filter((file) => !isNet(file));
  if (nets.length > 1 || models.length > 1) {
    refuse("These are too many files.", { err: "Choose one model, and at most one prototxt." });
    return work("");
  }
  // A prototxt that is chosen alone, after a model, is used with that model.
  const joins = nets.length === 1 && models.length === 0 && state.model && !isNet(state.model) && !state.net;
  if (!joins) state.model = models[0] ?? nets[0];
  state.net = models.length || joins ? nets[0] ?? null : null;
  at("refusal").hidden = at("result").hidden = true;
  at("saved").replaceChildren();
  for (const link of state.links.splice(0)) URL.revokeObjectURL(link);
  await look();
}

async function look() {
  const file = state.model, name = path(file), title = `${file.name} cannot be opened.`;
  if (file.size > MOST) {
    const err = `It has ${size(file.size)}; this page opens files of at most ${size(MOST)}.`;
    refuse(title, { err, failure: "too large" }, typed(["info", name]));
    return work("");
  }
  const info = await attempt("Reading", title, ["info", name], [file]);
  if (!info) return work("");
  show(info);
  if (isNet(file)) return finish();
  const check = await attempt("Checking", title, ["verify", name], [file], null, [0, 1]);
  if (check) verdict(check);
  const output = freeName("report", "html", [file]);
  const args = ["report", name, "-o", output];
  const report = await attempt("Drawing", "There is no report.", args, [file], output);
  if (report && report.output.size <= MOST_SHOWN) {
    at("report").srcdoc = await report.output.text();
    at("report").hidden = false;
  }
  finish();
}

function finish() {
  work("Ready.");
  at("name").focus({ preventScroll: true });
}

function show(info) {
  const [first, ...rest] = info.out.trimEnd().split("\n");
  at("name").replaceChildren(...breakable(state.model.name));
  at("net").replaceChildren(...(state.net ? ["With ", ...breakable(state.net.name)] : []));
  at("kind").textContent = `${first.replace(`${path(state.model)}: `, "")} (${size(state.model.size)})`;
  at("listing").querySelector("pre").textContent = rest.join("\n");
  at("listing").open = isNet(state.model);
  at("verdict").textContent = "";
  at("report").hidden = at("findings").hidden = true;
  at("save").hidden = isNet(state.model);
  at("result").hidden = false;
}

function verdict(check) {
  const isGood = check.code === 0;
  const text = (check.out + check.err).trimEnd();
  const head = isGood ? "Whole, and every value is finite." : "The check found something.";
  at("verdict").replaceChildren(element("span", head, { className: isGood ? "good" : "bad" }));
  at("findings").querySelector("pre").textContent = text;
  at("findings").hidden = isGood;
  at("findings").open = !isGood;
}

// --- saving

const PROGRAMS = { onnx: "convert", safetensors: "convert", npz: "convert", png: "show", html: "report" };

async function save(kind) {
  const { model, net } = state;
  const options = at("options").value.trim().split(/\s+/).filter(Boolean);
  const files = kind === "onnx" && net ? [net, model] : [model];
  const output = freeName(model.name.replace(/\.[^.]*$/, ""), kind, files);
  const program = PROGRAMS[kind], extra = program === "convert" ? options : [];
  const args = [program, ...extra, ...files.map(path), "-o", path({ name: output })];
  at("refusal").hidden = true;
  const result = await attempt(`Saving ${output}`, `${output} was not written.`, args, files, output);
  if (!result) return work("");
  const link = URL.createObjectURL(result.output);
  state.links.push(link);
  const line = element("p", "");
  const anchor = element("a", output, { href: link, download: output });
  line.append(anchor, ` ${size(result.output.size)}`);
  at("saved").replaceChildren(line);
  if (result.err) at("saved").append(element("pre", result.err.trimEnd()));
  work("Saved.");
  anchor.click();
}

// --- events

async function guarded(task) {
  try {
    await task();
  } catch (error) {
    if (!(error instanceof Cancelled)) {
      refuse("The page has failed.", { err: String(error.message ?? error) });
      state.worker?.terminate();
      state.worker = null;
    }
    work(error instanceof Cancelled ? "Cancelled." : "");
  }
}

at("files").addEventListener("change", (event) => {
  const files = [...event.target.files];
  event.target.value = "";
  if (files.length) guarded(() => open(files));
});
addEventListener("dragover", (event) => {
  event.preventDefault();
  at("choose").classList.add("over");
});
addEventListener("dragleave", () => at("choose").classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  at("choose").classList.remove("over");
  const files = [...event.dataTransfer.files];
  if (files.length) guarded(() => open(files));
});
at("choose").addEventListener("submit", (event) => event.preventDefault());
at("save").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(() => save(event.submitter?.value || "onnx"));
});
at("cancel").addEventListener("click", cancel);

guarded(async () => {
  await start();
  announce("Ready.");
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
});
