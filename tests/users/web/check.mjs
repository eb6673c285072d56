// Compares the page in Chromium with the native command: check.mjs FOLDER COMMAND [PART...]. FOLDER
// has the files that ./dev web makes; PART is a name of PARTS.
import { spawnSync } from "node:child_process";
import crypto from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { beyondFiles, filesOf, large, mutated, random } from "./cases.mjs";
import parts from "./use.mjs";

const { chromium } = (await import(pathToFileURL(`${process.env.PLAYWRIGHT}/index.js`))).default;
const [folder, command, ...wanted] = process.argv.slice(2).map((word, i) => (i < 2 ? path.resolve(word) : word));
const data = process.env.SYNCBLOB_TEST_DATA, nets = path.join(data, "nets");
const single = path.join(folder, "syncblob.html"), site = path.join(folder, "site");
const scratch = fs.mkdtempSync(path.join(process.env.SYNCBLOB_WEB_SCRATCH ?? os.tmpdir(), "syncblob-web-"));
const MOST = 700000; // bytes of the page
const failures = [];
const fail = (...words) => (failures.push(words.join(" ")), console.log("FAILED", ...words));
const digest = (bytes) => crypto.createHash("sha256").update(bytes).digest("hex");

// --- the command natively and in the browser

function native(args, files) {
  const home = fs.mkdtempSync(path.join(scratch, "native-"));
  for (const file of files) fs.symlinkSync(file, path.join(home, path.basename(file)));
  const began = performance.now();
  const run = spawnSync(command, args, { cwd: home, encoding: "utf8", maxBuffer: 1 << 28 });
  const milliseconds = performance.now() - began;
  const output = args[args.indexOf("-o") + 1];
  const made = path.join(home, output);
  const isMade = args.includes("-o") && fs.existsSync(made) && !fs.lstatSync(made).isSymbolicLink();
  const result = { code: run.status, out: run.stdout, err: run.stderr, digest: isMade ? digest(fs.readFileSync(made)) : null };
  fs.rmSync(home, { recursive: true });
  return { ...result, milliseconds };
}

async function inPage(page, args, files) {
  await page.setInputFiles("#test", files);
  const output = args.includes("-o") ? args[args.indexOf("-o") + 1] : null;
  return page.evaluate(async ([args, output]) => {
    const run = await command(args, [...document.getElementById("test").files], output);
    const bytes = run.output && (await crypto.subtle.digest("SHA-256", await run.output.arrayBuffer()));
    const hex = bytes && [...new Uint8Array(bytes)].map((b) => b.toString(16).padStart(2, "0")).join("");
    return { code: run.code, out: run.out, err: run.err + run.failure, digest: hex, milliseconds: run.milliseconds };
  }, [args, output]);
}

// System errors have other numbers in the page than in the command.
const words = (text) => text.replace(/ ?\(os error \d+\)/g, "");
function compare(name, here, there) {
  for (const what of ["code", "out", "err", "digest"]) {
    const [a, b] = [here[what], there[what]].map((value) => (typeof value === "string" ? words(value) : value));
    if (a !== b) return fail(`${name}: ${what}\n  native: ${String(a).slice(0, 400)}\n  page:   ${String(b).slice(0, 400)}`);
  }
  return true;
}

// --- browser

async function openPage(browser, url, options = { viewport: { width: 1200, height: 900 } }) {
  const page = await browser.newPage(options);
  page.on("pageerror", (error) => fail("the page:", error.message));
  page.on("console", (message) => message.type() === "error" && fail("console:", message.text()));
  await page.goto(url);
  await page.waitForSelector("html[data-ready]");
  await page.evaluate(() => document.body.append(Object.assign(document.createElement("input"), { id: "test", type: "file", multiple: true, hidden: true })));
  return page;
}

// `special` maps an address to a delay in milliseconds, or to the status codes of the first
// responses, which are failures.
function serve(root, special = {}) {
  const seen = [];
  const types = { html: "text/html", js: "text/javascript", css: "text/css", wasm: "application/wasm" };
  const server = http.createServer(async (request, response) => {
    const rule = { ...special[request.url] };
    seen.push(request.url);
    if (rule.delay) await new Promise((resolve) => setTimeout(resolve, rule.delay));
    if (rule.useless?.length) return response.writeHead(rule.useless.shift()).end("busy");
    const file = root && path.join(root, request.url === "/" ? "index.html" : path.normalize(request.url));
    if (!file || !fs.existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": types[path.extname(file).slice(1)] ?? "text/plain" }).end(fs.readFileSync(file));
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve({ server, seen, url: `http://127.0.0.1:${server.address().port}/` })));
}

// --- parts

const tasks = (file) => {
  if (file.endsWith(".prototxt")) return [["info", file], ["info", "--json", file]];
  const saved = ["safetensors", "npz", "npy"].map((kind) => ["convert", file, "-o", `made.${kind}`]);
  return [["info", file], ["info", "--json", file], ["verify", file], ["report", file, "-o", "made.html"], ["show", file, "-o", "made.png"], ...saved];
};

async function files({ pages }) {
  const all = [data, nets].flatMap((from) => filesOf(from).map((name) => path.join(from, name)));
  let runs = 0;
  for (const file of all)
    for (const args of tasks(path.basename(file))) {
      const here = native(args, [file]);
      for (const page of pages) runs += Boolean(compare(`${page.url().slice(0, 5)} ${args.join(" ")}`, here, await inPage(page, args, [file])));
    }
  console.log(`files: ${all.length}, ${runs} runs with the same exit code, output, errors and bytes, from a file and by http`);
}

function written(files) {
  const home = fs.mkdtempSync(path.join(scratch, "case-"));
  return Object.entries(files).map(([name, bytes]) => (fs.writeFileSync(path.join(home, name), bytes), path.join(home, name)));
}

async function beyond({ pages }) {
  let all = 0;
  for (const [name, bytes] of Object.entries(beyondFiles))
    for (const args of [["info", name], ["verify", name], ["convert", name, "-o", "made.safetensors"], ["convert", name, "-o", "made.npz"]]) {
      const files = written({ [name]: bytes }), here = native(args, files), there = await inPage(pages[0], args, files);
      all++;
      // The page may refuse a file for another reason than a 64-bit host, but must not trap.
      const isRefused = there.code === 1 && there.out + there.err !== "" && !there.digest && !/RuntimeError|panicked/.test(there.err);
      if (isRefused) continue;
      if (here.code === 0) compare(args.join(" "), here, there);
      else fail(`beyond 2^32: ${args.join(" ")}: ${there.code} ${there.out.slice(0, 200)} ${there.err.slice(0, 200)}`);
    }
  console.log(`beyond 2^32: ${all} runs, refused or as the command, without a trap`);
}

async function mutants({ pages }) {
  const count = Number(process.env.SYNCBLOB_WEB_MUTANTS ?? 3000), next = random(45);
  const seeds = [data, nets].flatMap((from) => filesOf(from).map((name) => path.join(from, name))).filter((file) => fs.statSync(file).size < 450000);
  const bytes = seeds.map((file) => fs.readFileSync(file));
  let same = 0, refused = 0;
  for (let i = 0; i < count; i++) {
    const from = i % seeds.length, name = `m${i}${path.extname(seeds[from])}`;
    const [file] = written({ [name]: mutated(bytes[from], next) });
    const all = tasks(name), args = all[i % all.length];
    const here = native(args, [file]);
    refused += here.code !== 0;
    same += Boolean(compare(`mutant ${i} of ${path.basename(seeds[from])}: ${args.join(" ")}`, here, await inPage(pages[0], args, [file])));
    fs.rmSync(path.dirname(file), { recursive: true });
  }
  console.log(`mutants: ${same} of ${count} as natively, ${refused} of them refused`);
}

async function save(page, kind, files) {
  await page.setInputFiles("#files", files);
  await page.waitForFunction(() => !document.getElementById("status").textContent.endsWith("…"), null, { timeout: 600000 });
  const arrives = page.waitForEvent("download", { timeout: 600000 });
  const began = performance.now();
  await page.click(`button[value=${kind}]`);
  const download = await Promise.race([arrives, page.waitForSelector("#refusal:not([hidden])", { timeout: 600000 }).then(() => null)]);
  if (!download) throw new Error(await page.textContent("#refusal"));
  const to = path.join(scratch, download.suggestedFilename());
  await download.saveAs(to);
  return { file: to, milliseconds: performance.now() - began };
}

function makeModel(name, to) {
  const code = "import pathlib, sys, whole; pathlib.Path(sys.argv[2]).write_bytes(whole.WholeNet(sys.argv[1], whole.Kept.read()).model())";
  const run = spawnSync(process.env.PYTHON, ["-Bc", code, name, to], { cwd: fileURLToPath(new URL("../onnx", import.meta.url)), encoding: "utf8" });
  if (run.status !== 0) fail("no model:", name, run.stderr);
}

async function onnx({ pages }) {
  const models = [1, 2, 3].map((i) => [`${nets}/mtcnn_kpzhang93_det${i}.prototxt`, `${data}/mtcnn_kpzhang93_det${i}.caffemodel`]);
  const ssd = path.join(scratch, "mobilenet-ssd.caffemodel");
  makeModel("mobilenet-ssd__deploy", ssd);
  models.push([`${nets}/mobilenet-ssd__deploy.prototxt`, ssd]);
  for (const [net, file] of models) {
    const made = await save(pages[0], "onnx", [net, file]);
    const here = native(["convert", path.basename(net), path.basename(file), "-o", "made.onnx"], [net, file]);
    if (!here.digest || digest(fs.readFileSync(made.file)) !== here.digest) fail("other ONNX:", file);
  }
  console.log(`nets: ${models.length}`);
}

async function big({ browser, urls }) {
  for (const [megabytes, url] of [100, 600].flatMap((megabytes) => urls.map((url) => [megabytes, url]))) {
    const file = path.join(scratch, `made${megabytes}.caffemodel`), name = path.basename(file);
    large(file, megabytes);
    const page = await openPage(browser, url);
    const [info, here] = [await inPage(page, ["info", name], [file]), native(["info", name], [file])];
    compare(`info ${name}`, here, info);
    const args = ["convert", name, "-o", `made${megabytes}.safetensors`], saved = native(args, [file]);
    const made = await save(page, "safetensors", [file]);
    if (digest(fs.readFileSync(made.file)) !== saved.digest) fail("other safetensors:", file);
    const [m, n, o, p] = [info, here, made, saved].map((run) => run.milliseconds);
    for (const [what, ratio, goal] of [["info", m / n, 4], ["save", o / p, 8]])
      console.log(`${what} of ${megabytes} MB on the page, ${url.slice(0, 4)}, to the command: ${ratio.toFixed(2)}, at most ${goal}: ${ratio <= goal ? "met" : "MISSED"}`);
    await page.close();
    for (const gone of [file, made.file]) fs.rmSync(gone);
  }
}

async function use({ browser }) {
  const page = await openPage(browser, pathToFileURL(single).href);
  const file = path.join(scratch, "huge.caffemodel");
  fs.writeFileSync(file, "");
  fs.truncateSync(file, 3 * 2 ** 30);
  await page.setInputFiles("#files", file);
  const text = await page.textContent("#refusal:not([hidden])");
  if (!text.includes("at most 2.1 GB") || !text.includes("syncblob info huge.caffemodel")) fail("too large:", text);
  fs.rmSync(file);
  await page.setInputFiles("#files", path.join(data, "mtcnn_kpzhang93_det1.caffemodel"));
  await page.waitForFunction(() => document.getElementById("status").textContent === "Ready.");
  await page.waitForSelector("#report:not([hidden])"); // a new worker also has the status "Ready."
  await page.frameLocator("#report").locator("tr").first().waitFor(); // an empty frame gets no focus
  const reached = [];
  await page.focus("#files");
  for (let i = 0; i < 9; i++) {
    await page.keyboard.press("Tab");
    reached.push(await page.evaluate(() => document.activeElement.value || document.activeElement.id || document.activeElement.tagName));
  }
  const wanted = ["onnx", "safetensors", "npz", "png", "html", "options", "report"];
  if (!wanted.every((name) => reached.includes(name))) fail("by the keyboard:", reached.join(" "));
  for (const stem of ["-x", "--help", "a b'c", "名"]) {
    const buffer = fs.readFileSync(path.join(data, "mtcnn_kpzhang93_det1.caffemodel"));
    await page.setInputFiles("#files", { name: `${stem}.caffemodel`, mimeType: "", buffer });
    await page.waitForFunction((stem) => document.getElementById("name").textContent === `${stem}.caffemodel` &&
      document.getElementById("status").textContent === "Ready.", stem);
    const saved = await page.evaluate(() => save("npz").then(() => document.getElementById("saved").textContent));
    if (!saved.startsWith(`${stem}.npz`)) fail("saved:", stem, saved, await page.textContent("#refusal"));
  }
  // Each row has the chosen file, the kind to save, and the saved file's name, which must differ.
  const taken = [["report.caffemodel", "html", "report.html"], ["made.npz", "npz", "made (1).npz"], ["report.html", "html", "report (1).html"]];
  const bytes = fs.readFileSync(path.join(data, "mtcnn_kpzhang93_det1.caffemodel"));
  const [npz] = written({ "made.caffemodel": bytes }).map((file) => path.dirname(file));
  spawnSync(command, ["convert", "made.caffemodel", "-o", "made.npz"], { cwd: npz });
  for (const [name, kind, wanted] of taken) {
    const buffer = name.endsWith(".npz") ? fs.readFileSync(path.join(npz, name)) : bytes;
    const { file } = await save(page, kind, { name, mimeType: "", buffer });
    if (path.basename(file) !== wanted) fail("saved as:", file);
    await page.waitForSelector("#report:not([hidden])");
  }
  console.log(`use: too large, odd names saved; the keyboard reaches ${reached.join(", ")}`);
  await page.close();
}

// Makes requests that would all reach the server without the page's policy.
const attempts = async (url) => {
  const tries = [() => fetch(`${url}fetch`, { method: "POST", mode: "no-cors" }), () => navigator.sendBeacon(`${url}beacon`),
    () => (new Image().src = `${url}image`), () => new WebSocket(url.replace("http", "ws")), () => new EventSource(`${url}events`),
    () => document.head.append(Object.assign(document.createElement("script"), { src: `${url}script` })),
    () => document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: `${url}style` })),
    () => { const form = Object.assign(document.createElement("form"), { action: `${url}form`, target: "f" });
      document.body.append(Object.assign(document.createElement("iframe"), { name: "f" }), form); form.submit(); }];
  for (const attempt of tries) try { await attempt(); } catch { /* refused */ }
  await new Promise((resolve) => setTimeout(resolve, 1500));
};

async function requests({ browser, urls }) {
  const other = await serve(null), own = await serve(site);
  const open = path.join(scratch, "open.html");
  fs.writeFileSync(open, fs.readFileSync(single, "utf8").replace(/<meta http-equiv[^>]*>/, ""));
  for (const [name, from] of [["with", urls[0]], ["with", own.url], ["without", pathToFileURL(open).href]]) {
    const page = await browser.newPage();
    await page.goto(from);
    await page.waitForSelector("html[data-ready]");
    for (const { seen } of [other, own]) seen.length = 0;
    for (const { url } of [other, own]) {
      await page.evaluate(attempts, url);
      await page.workers()[0].evaluate((url) => fetch(`${url}worker`, { method: "POST", mode: "no-cors" }).catch(() => null), url);
    }
    const seen = [...other.seen, ...own.seen];
    console.log(`requests: ${seen.length} ${name} the policy, ${from.slice(0, 5)}`);
    if (name === "with" ? seen.length : seen.length < 14) fail(`requests ${name} the policy: ${seen}`);
    await page.close();
  }
  for (const { server } of [other, own]) server.close();
}

async function size() {
  const { size } = fs.statSync(single);
  if (size > MOST) fail(`the page has ${size} bytes, more than ${MOST}`);
}

const users = parts({ fail, data, nets, scratch, single, site, command, serve, openPage, written });
const OF_DATA = ["files", "nets", "use", ...Object.keys(users), "mutants"]; // parts that read files of SYNCBLOB_TEST_DATA
const PARTS = { size, files, beyond, nets: onnx, requests, use, ...users, large: big, mutants };
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const served = await serve(site);
try {
  const urls = [pathToFileURL(single).href, served.url], pages = [];
  for (const url of urls) pages.push(await openPage(browser, url));
  for (const [name, part] of Object.entries(PARTS)) {
    if (wanted.length && !wanted.includes(name)) continue;
    if (OF_DATA.includes(name) && !fs.existsSync(nets)) console.log(`skipped: ${name}: ${nets} is missing; SYNCBLOB_TEST_DATA names another folder`);
    else await part({ browser, pages, urls });
  }
} finally {
  await browser.close();
  served.server.close();
  fs.rmSync(scratch, { recursive: true });
}
console.log(failures.length ? `${failures.length} failures` : "all as natively");
process.exitCode = failures.length ? 1 : 0;
