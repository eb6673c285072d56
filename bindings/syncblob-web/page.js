// The page passes chosen files to the worker, which runs the command, and shows the command's output.
"use strict";

const at = (id) => document.getElementById(id);

// MOST limits a model: WebAssembly has at most 4 GiB of memory, and a browser's Blobs about as much.
// MOST_SHOWN limits a report, since the page loads a report as one string.
const MOST = 2 * 2 ** 30;
const MOST_SHOWN = 64 * 2 ** 20;

const state = {
  chosen: [], // the files in use or being read, each with the output of `info`, or null
  model: null, net: null, // the files that the page shows
  link: null, // the address of the saved file
  run: 0, // the number of tasks that began or were cancelled
  from: null, // the element that had the focus when the task began
  parts: null, worker: null, isBusy: false, // `worker` is the worker's promise
};

// --- tasks (opening and saving); a new task cancels the earlier task

// Returns the promise's value, or throws if the task was cancelled meanwhile.
async function current(promise) {
  const { run } = state;
  const value = await promise;
  if (run !== state.run) throw new Error("cancelled");
  return value;
}

// A running command cannot be interrupted, so the page terminates the worker.
function discard() {
  state.worker?.then((worker) => worker.terminate());
  state.worker = null;
  state.isBusy = false;
}

function cancel() {
  state.run++;
  if (state.isBusy) discard();
}

async function guarded(task) {
  cancel();
  const { run } = state;
  state.from = document.activeElement;
  try {
    await task();
  } catch (error) {
    if (run !== state.run) return;
    refuse("The page has failed.", { err: String(error.message ?? error) });
    if (state.isBusy) discard();
    work("");
  }
}

// --- parts of the page: inside the single file, or separate files on a server

async function fetched(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name} is missing: the server's status is ${response.status}.`);
  return response.arrayBuffer();
}

// Adds a second policy, which forbids further requests to the page's server.
function forbidRequests() {
  const policy = document.querySelector("meta[http-equiv]").cloneNode();
  policy.content = policy.content.replaceAll("'self'", "");
  document.head.append(policy);
}

// A worker from a Blob has the page's policy; a worker from a server would have no policy.
function partsOf(script, wasm) {
  return { script: URL.createObjectURL(new Blob([script], { type: "text/javascript" })), wasm };
}

async function partsOfPage() {
  const inside = at("parts");
  if (!inside) {
    const parts = await Promise.all(["worker.js", "syncblob.wasm"].map(fetched));
    if (!WebAssembly.validate(parts[1])) throw new Error("syncblob.wasm is damaged: the server sent other bytes.");
    forbidRequests();
    return partsOf(...parts);
  }
  const [size, program] = inside.dataset.sizes.split(" ").map(Number);
  const all = unpacked(bytesOf(inside.textContent), size + program);
  inside.remove();
  return partsOf(all.subarray(0, size), all.slice(size));
}

// --- the command

async function startWorker() {
  state.parts ??= await partsOfPage();
  const worker = new Worker(state.parts.script);
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => (data.ready ? resolve(worker) : reject(new Error(data.failure)));
    worker.onerror = (event) => reject(new Error(event.message || "the worker does not start"));
    worker.postMessage({ wasm: state.parts.wasm });
  });
}

// Returns the promise of the only worker. A later call retries a failed start.
function start() {
  return (state.worker ??= startWorker().catch((error) => {
    state.worker = null;
    throw error;
  }));
}

function progress(done, total) {
  if (total === 0) return;
  at("progress").max = total;
  at("progress").value = Math.min(done, total);
}

async function command(args, files, output) {
  const worker = await current(start());
  const total = files.reduce((sum, file) => sum + file.size, 0);
  state.isBusy = true;
  return current(new Promise((resolve, reject) => {
    worker.onerror = (event) => reject(new Error(event.message));
    worker.onmessage = ({ data }) => {
      if (!data.done) return progress(Math.max(data.read, data.written), total);
      state.isBusy = false;
      resolve(data);
    };
    worker.postMessage({ args, files, output });
  }));
}

// --- output

// Escapes the characters that the command escapes.
function printable(text) {
  const unprintable = /[\p{Cc}\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;
  return text.replace(unprintable, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

const isFocusLost = () => [document.body, at("cancel")].includes(document.activeElement);

function work(text) {
  const is = text.endsWith("…");
  at("status").textContent = printable(text);
  at("progress").hidden = at("cancel").hidden = !is;
  at("progress").removeAttribute("value");
  for (const button of at("save").querySelectorAll("button")) button.disabled = is;
  // A button loses the focus when it is disabled or hidden.
  if (!is && isFocusLost()) state.from?.focus({ preventScroll: true });
}

function element(name, text, properties = {}) {
  return Object.assign(document.createElement(name), { textContent: text, ...properties });
}

function breakable(name) {
  return printable(name).split(/(?<=[._-])/).flatMap((part) => [part, document.createElement("wbr")]);
}

function size(bytes) {
  const units = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const [unit, name] = units.find(([least]) => bytes >= least) ?? [1, "bytes"];
  return `${(bytes / unit).toLocaleString("en", { maximumFractionDigits: 1 })} ${name}`;
}

// Shows the command's errors. If the browser cannot run the command, also shows the line to type.
function refuse(title, result, typed) {
  const box = at("refusal");
  const parts = [element("p", ""), element("pre", (result.err || result.failure).trimEnd())];
  parts[0].append(element("strong", printable(title)));
  if (result.failure)
    parts.push(element("p", "A browser cannot do this. Type in a terminal instead:"), element("pre", typed));
  box.replaceChildren(...parts);
  box.hidden = false;
}

const quoted = (name) => (/^[\w./+@-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`);
const typed = (args) => printable(["syncblob", ...args].map(quoted).join(" "));
const path = (file) => (file.name.startsWith("-") ? `./${file.name}` : file.name);

// A browser refuses to read a file that has changed since the user chose it.
const UNREAD = { err: "The file has changed, or no longer exists. Choose it again." };
const isUnread = (result) => /^Not(Readable|Found)Error/.test(result.failure);

// Runs the command and shows the status `words`. If the command fails, shows its errors and returns null.
async function attempt(words, title, args, files, output, codes = [0]) {
  work(`${words} …`);
  const result = await command(args, files, output);
  if (codes.includes(result.code) && !result.failure) return result;
  refuse(title, isUnread(result) ? UNREAD : result, typed(args));
  return null;
}

// Returns the first of "stem.kind", "stem (1).kind" … that is not the name of a chosen file.
function freeName(stem, kind, files) {
  const isTaken = (name) => files.some((file) => file.name === name);
  let name = `${stem}.${kind}`;
  for (let i = 1; isTaken(name); i++) name = `${stem} (${i}).${kind}`;
  return name;
}

// --- opening

// Returns the output of `info` for a file, or null if the page or the command refuses the file.
async function infoOf(file) {
  const args = ["info", path(file)], title = `${file.name} cannot be opened.`;
  if (file.size <= MOST) return (await attempt("Reading", title, args, [file]))?.out ?? null;
  const err = `The file has ${size(file.size)}; this page opens files of at most ${size(MOST)}.`;
  refuse(title, { err, failure: "too large" }, typed(args));
  return null;
}

async function identify(chosen) {
  for (const each of chosen) if ((each.info ??= await infoOf(each.file)) === null) return false;
  return true;
}

const kindOf = ({ file, info }) => info.split("\n", 1)[0].slice(printable(path(file)).length + 2);
const isNet = (each) => kindOf(each).startsWith("prototxt");
const isModel = (each) => !isNet(each);

const TOO_MANY = ["These are too many files.", { err: "Choose one model, and at most one prototxt." }];

// A prototxt that the user chooses alone belongs to the last model.
async function together(files) {
  const before = state.chosen, chosen = files.map((file) => ({ file, info: null }));
  state.chosen = [...before, ...chosen];
  if (chosen.length > 2) return refuse(...TOO_MANY);
  if (!(await identify(chosen))) return null;
  const [first, second] = chosen;
  if (second && isNet(first) === isNet(second)) return refuse(...TOO_MANY);
  if (second || isModel(first)) return chosen;
  return (await identify(before)) ? [...before.filter(isModel).slice(-1), first] : null;
}

async function open(files) {
  at("refusal").hidden = at("result").hidden = true;
  withdraw();
  state.chosen = (await together(files)) ?? [];
  if (!state.chosen.length) return work("");
  const model = state.chosen.find(isModel), net = state.chosen.find(isNet);
  await look(model ?? net, model && net);
}

async function look(model, net) {
  const { file } = model, name = path(file);
  Object.assign(state, { model: file, net: net?.file });
  show(model);
  if (isNet(model)) return finish();
  const check = await attempt("Checking", `${file.name} cannot be checked.`, ["verify", name], [file], null, [0, 1]);
  if (check) verdict(check);
  const output = freeName("report", "html", [file]);
  const report = await attempt("Drawing", "There is no report.", ["report", name, "-o", output], [file], output);
  if (report?.output.size > MOST_SHOWN) return finish("Ready. The report is too large to show; save it as HTML.");
  if (report) at("report").srcdoc = await current(report.output.text());
  at("report").hidden = !report;
  finish();
}

function finish(text = "Ready.") {
  work(text);
  if (isFocusLost()) at("name").focus({ preventScroll: true });
}

function show(model) {
  const [, ...rest] = model.info.trimEnd().split("\n");
  at("name").replaceChildren(...breakable(state.model.name));
  at("net").replaceChildren(...(state.net ? ["With ", ...breakable(state.net.name)] : []));
  at("kind").textContent = `${kindOf(model)} (${size(state.model.size)})`;
  at("listing").querySelector("pre").textContent = rest.join("\n");
  at("listing").open = isNet(model);
  at("verdict").textContent = "";
  at("report").hidden = at("findings").hidden = true;
  at("save").hidden = isNet(model);
  at("result").hidden = false;
}

function verdict(check) {
  const isGood = check.code === 0;
  const text = (check.out + check.err).trimEnd();
  const head = isGood ? "Whole, and every value is finite." : "The check found problems.";
  at("verdict").replaceChildren(element("span", head, { className: isGood ? "good" : "bad" }));
  at("findings").querySelector("pre").textContent = text;
  at("findings").hidden = isGood;
  at("findings").open = !isGood;
}

// --- saving

const PROGRAMS = { onnx: "convert", safetensors: "convert", npz: "convert", png: "show", html: "report" };

// Splits options as a shell does: at spaces, except in quotes and after a backslash.
function words(text) {
  const found = text.match(/(\\.|"(\\.|[^"\\])*"|'[^']*'|\S)+/gs) ?? [];
  const plain = (_, one, double, single) => one ?? double?.replace(/\\(["\\$`])/g, "$1") ?? single;
  return found.map((word) => word.replace(/\\(.)|"((?:\\.|[^"\\])*)"|'([^']*)'/gs, plain));
}

// Removes the link to the saved file, so that the browser can free its bytes.
function withdraw() {
  at("saved").replaceChildren();
  URL.revokeObjectURL(state.link);
  state.link = null;
}

function offer(bytes, name) {
  state.link = URL.createObjectURL(bytes);
  const anchor = element("a", printable(name), { href: state.link, download: name });
  const line = element("p", "");
  line.append(anchor, ` ${size(bytes.size)}`);
  at("saved").append(line);
  anchor.click();
}

async function save(kind) {
  const { model, net } = state;
  const files = kind === "onnx" && net ? [net, model] : [model];
  const output = freeName(model.name.replace(/\.[^.]*$/, ""), kind, files);
  const program = PROGRAMS[kind], extra = program === "convert" ? words(at("options").value) : [];
  const args = [program, ...extra, ...files.map(path), "-o", path({ name: output })];
  at("refusal").hidden = true;
  withdraw();
  const result = await attempt(`Saving ${output}`, `${output} was not written.`, args, files, output);
  if (!result) return work("");
  // Options such as --dry-run print text, and write no file.
  if (result.output) offer(result.output, output);
  else at("saved").append(element("pre", result.out.trimEnd()));
  if (result.err) at("saved").append(element("pre", result.err.trimEnd()));
  work(result.output ? "Saved." : "Ready.");
}

// --- events

function take(files) {
  if (files.length) guarded(() => open(files));
}
function takeChosen() {
  const files = [...at("files").files];
  at("files").value = "";
  take(files);
}

function drag(event) {
  event.preventDefault();
  document.body.classList.add("over");
}
const endDrag = () => document.body.classList.remove("over");

const isFolder = (item) => item.webkitGetAsEntry?.()?.isDirectory;
function drop(event) {
  event.preventDefault();
  endDrag();
  const { items, files } = event.dataTransfer;
  if (![...items].some(isFolder)) return take([...files]);
  guarded(async () => {
    refuse("This is a folder.", { err: "Choose the files in it." });
    work("");
  });
}

for (const kind of ["dragenter", "dragover"]) addEventListener(kind, drag);
addEventListener("dragleave", (event) => event.relatedTarget === null && endDrag());
addEventListener("drop", drop);
at("files").addEventListener("change", takeChosen);
at("choose").addEventListener("submit", (event) => event.preventDefault());
at("save").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(() => save(event.submitter?.value || "onnx"));
});
at("cancel").addEventListener("click", () => {
  cancel();
  if (at("result").hidden) state.chosen = [];
  work("Cancelled.");
});

guarded(async () => {
  at("status").textContent = "Starting …";
  await current(start());
  work("Ready.");
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
});
takeChosen(); // a user can choose files before this script has loaded
