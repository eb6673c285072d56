// Tests what users do with the page: quick choices, kinds of files, drops, options, the keyboard.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { large } from "./cases.mjs";

async function shown(page) {
  const look = () => page.evaluate(() => {
    const text = (id) => (at(id).closest("[hidden]") ? "" : at(id).textContent);
    const { activeElement } = document;
    const focus = activeElement.value || activeElement.id || activeElement.tagName;
    const texts = Object.fromEntries(["status", "refusal", "name", "net", "kind", "saved"].map((id) => [id, text(id)]));
    return { ...texts, focus, report: !at("report").closest("[hidden]"), saves: !at("save").closest("[hidden]") };
  });
  for (let last = "", same = 0; same < 4; await page.waitForTimeout(150)) {
    const now = JSON.stringify(await look());
    same = now === last && !JSON.parse(now).status.endsWith("…") ? same + 1 : 0;
    last = now;
  }
  const state = await look();
  if (state.report) state.report = await page.frameLocator("#report").locator("h1").textContent();
  return state;
}

async function dropAlong(page, elements, files) {
  const session = await page.context().newCDPSession(page), data = { items: [], files, dragOperationsMask: 1 };
  const send = async (type, to) => {
    const { x, y } = await page.locator(to).boundingBox();
    await session.send("Input.dispatchDragEvent", { type, x: x + 30, y: y + 30, data });
  };
  await page.evaluate(() => scrollTo(0, 0));
  await send("dragEnter", elements[0]);
  for (const each of elements) await send("dragOver", each);
  await send("drop", elements.at(-1));
}

// Delays Blob.text(), by which the page reads the report. window.reads counts the calls.
const slowTexts = (page) => page.evaluate(() => {
  const { text } = Blob.prototype;
  window.reads = 0;
  Blob.prototype.text = async function () {
    window.reads++;
    await new Promise((resolve) => setTimeout(resolve, 1500));
    return text.call(this);
  };
});
const readsText = (page) => page.waitForFunction(() => window.reads > 0);

export default function parts({ fail, data, nets, scratch, single, site, command, serve, openPage, written }) {
  const open = (browser, options) => openPage(browser, pathToFileURL(single).href, options);
  const model = (i) => path.join(data, `mtcnn_kpzhang93_det${i}.caffemodel`);
  const net = (i) => path.join(nets, `mtcnn_kpzhang93_det${i}.prototxt`);
  const named = (name, file) => written({ [name]: fs.readFileSync(file) })[0];
  const [bad] = written({ "bad.caffemodel": "hello world\n" });
  const name = (i) => path.basename(model(i)), choose = (page, ...files) => page.setInputFiles("#files", files);

  // Compares members with `wanted`. A text in `wanted` need only be the beginning.
  function check(what, seen, wanted) {
    const is = (a, b) => (typeof b === "string" && b ? String(a).startsWith(b) : a === b);
    const wrong = Object.keys(wanted).filter((key) => !is(seen[key], wanted[key]));
    for (const key of wrong) fail(`${what}: ${key}: ${JSON.stringify(seen[key]).slice(0, 400)}, not ${JSON.stringify(wanted[key]).slice(0, 400)}`);
  }
  const whole = (i) => ({ status: "Ready.", refusal: "", name: name(i), report: name(i) });

  // In `slow` rows the first file is chosen before the worker has started.
  async function races({ browser }) {
    const [one, two] = [1, 2].map((i) => path.join(scratch, `large${i}.caffemodel`));
    for (const file of [one, two]) large(file, 100);
    const cancelled = { status: "Cancelled.", refusal: "", name: "", report: false };
    const refused = { status: "", refusal: "bad.caffemodel cannot be opened.", name: "" };
    const both = { ...whole(1), net: `With ${path.basename(net(1))}` };
    const second = { status: "Ready.", name: path.basename(two) };
    const paired = { status: "Ready.", refusal: "", net: `With ${path.basename(net(2))}` };
    // A step is a file to choose, a time in milliseconds, or an action.
    const cancel = (page) => page.click("#cancel");
    const rows = [
      ["another model at the start", "slow", [model(1), 300, model(2)], whole(2)],
      ["cancelled at the start", "slow", [model(1), cancel, 2000], cancelled],
      ["three models", "", [one, 100, model(1), model(2)], whole(2)],
      ["another model in a run", "", [one, 100, two], second],
      ["two prototxts in a run", "", [one, 100, net(1), net(2)], { ...paired, name: path.basename(one) }],
      ["two prototxts in a later run", "", [one, 100, net(1), 400, net(2)], { ...paired, name: path.basename(one) }],
      ["a prototxt after a cancelled run", "", [one, cancel, net(1)], { refusal: "", name: path.basename(net(1)) }],
      ["refused before the report", "", [slowTexts, model(1), readsText, bad, 2000], refused],
      ["cancelled before the report", "", [slowTexts, model(1), readsText, cancel, 2000], { status: "Cancelled.", report: false }],
      ["a prototxt before the report", "", [slowTexts, model(1), readsText, net(1)], both],
    ];
    const { server, url } = await serve(site, { "/syncblob.wasm": { delay: 1500 } });
    for (const [what, isSlow, steps, wanted] of rows) {
      const page = await (isSlow ? browser.newPage() : open(browser));
      if (isSlow) await page.goto(url);
      await page.evaluate(() => {
        window.log = [];
        new MutationObserver(() => window.log.push(at("status").textContent)).observe(at("status"), { childList: true });
      });
      for (const step of steps)
        await (typeof step === "function" ? step(page) : typeof step === "number" ? page.waitForTimeout(step) : choose(page, step));
      const seen = await shown(page), log = await page.evaluate(() => window.log);
      check(what, seen, wanted);
      if (log.indexOf("Ready.") >= 0 && log.indexOf("Ready.") !== log.length - 1) fail(`${what}: ready too early:`, log.join(", "));
      if (log.includes("Cancelled.") && !steps.includes(cancel)) fail(`${what}: cancelled:`, log.join(", "));
      await page.close();
    }
    server.close();
    console.log(`races: ${rows.length}`);
  }

  async function choices({ browser }) {
    const withNet = (i) => ({ ...whole(1), net: `With ${path.basename(net(i))}`, saves: true });
    const many = { refusal: "These are too many files.", name: "", status: "" };
    const rows = [
      ["a prototxt after a refused model", [[bad], [net(1)]], { refusal: "", name: path.basename(net(1)), saves: false }],
      ["a prototxt after a model", [[model(1)], [net(1)]], withNet(1)],
      ["another prototxt", [[model(1), net(2)], [net(1)]], withNet(1)],
      ["another prototxt again", [[model(1)], [net(2)], [net(1)]], withNet(1)],
      ["a model after a pair", [[model(1), net(1)], [model(2)]], { ...whole(2), net: "" }],
      ["net.cfg", [[named("net.cfg", net(1))]], { refusal: "", name: "net.cfg", kind: "prototxt", saves: false }],
      ["net.prototxt.bak", [[model(1), named("net.prototxt.bak", net(1))]], { ...whole(1), net: "With net.prototxt.bak" }],
      ["model.txt", [[named("model.txt", model(1))]], { refusal: "", name: "model.txt", kind: "caffemodel", saves: true }],
      ["model.txt and a prototxt", [[named("model.txt", model(1)), net(1)]], { refusal: "", name: "model.txt", net: "With" }],
      ["two models", [[model(1), model(2)]], many],
      ["two prototxts", [[net(1), net(2)]], many],
      ["three files", [[model(1), net(1), net(2)]], many],
      ["a name that reorders text", [[named("\u202ea\nb.caffemodel", model(1))]], { name: "\\u{202e}a\\u{a}b.caffemodel", kind: "caffemodel" }],
      ["such a name refused", [[named("\u202ea.caffemodel", bad)]], { refusal: "\\u{202e}a.caffemodel" }],
    ];
    for (const [what, all, wanted] of rows) {
      const page = await open(browser);
      for (const files of all) {
        await choose(page, ...files);
        await shown(page);
      }
      check(what, await shown(page), wanted);
      await page.close();
    }
    console.log(`choices: ${rows.length}`);
  }

  async function drops({ browser }) {
    let page = await open(browser);
    const home = path.join(scratch, "folder");
    fs.mkdirSync(home);
    const rows = [[["#drop"], model(1), whole(1)], [["#report"], model(2), whole(2)], [["#drop", "#report"], model(3), whole(3)],
      [["#drop"], home, { refusal: "This is a folder." }]];
    for (const [elements, file, wanted] of rows) {
      await dropAlong(page, elements, [file]);
      check(`dropped at ${elements}`, await shown(page), wanted);
    }
    await page.close();
    page = await open(browser);
    await choose(page, model(3));
    await shown(page);
    await page.hover("#frame");
    await page.mouse.wheel(0, 200);
    await shown(page);
    if (!(await page.frames()[1].evaluate(() => scrollY))) fail("the mouse does not scroll the report");
    await dropAlong(page, ["#drop", "#report"], [model(2)]);
    check("dropped at a report in use", await shown(page), whole(2));
    await page.close();
    const changes = { changed: (file) => fs.appendFileSync(file, "x"), cut: (file) => fs.truncateSync(file, 100), deleted: fs.rmSync };
    for (const [what, change] of Object.entries(changes)) {
      const page = await open(browser);
      const [file] = written({ "m.caffemodel": fs.readFileSync(model(1)) });
      await choose(page, file);
      await shown(page);
      change(file);
      await page.click("button[value=npz]");
      const seen = await shown(page);
      if (!seen.refusal.includes("Choose it again") || seen.refusal.includes("terminal")) fail(`a file was ${what}:`, seen.refusal);
      await page.close();
    }
    console.log(`drops: ${rows.length}; files that changed, ${Object.keys(changes).length}`);
  }

  const OPTIONS = ["", " --to  npy ", `--only "conv1"`, "--only 'a b' c", String.raw`a\ b\"c "d\"e\f" 'g\h'`, `a"b c"d'e f'`, `"" ''`, `a"\\$x"`];

  async function saving({ browser }) {
    const page = await open(browser);
    for (const text of OPTIONS) {
      const { stdout } = spawnSync("sh", ["-fc", `set -- ${text}; for word; do printf '%s\\n' "$word"; done`], { encoding: "utf8" });
      const words = await page.evaluate((text) => words(text).map((word) => `${word}\n`).join(""), text);
      if (words !== stdout) fail(`options ${text}: ${JSON.stringify(words)}, by sh ${JSON.stringify(stdout)}`);
    }
    await choose(page, model(1));
    await shown(page);
    await page.evaluate(() => {
      window.links = 0;
      const { createObjectURL, revokeObjectURL } = URL;
      URL.createObjectURL = (bytes) => (window.links++, createObjectURL.call(URL, bytes));
      URL.revokeObjectURL = (link) => ((window.links -= Boolean(link)), revokeObjectURL.call(URL, link));
    });
    const natively = (...args) => spawnSync(command, ["convert", ...args], { cwd: data, encoding: "utf8" }).stdout.trimEnd();
    const output = `${path.parse(model(1)).name}.npz`;
    const rows = [
      ["--help", "Ready.", natively("--help")],
      ["-h", "Ready.", natively("-h")],
      ["--dry-run", "Ready.", natively("--dry-run", name(1), "-o", output)],
      [`--only "conv1.*"`, "Saved.", output],
      ["", "Saved.", output],
    ];
    for (const [options, status, saved] of rows) {
      await page.fill("#options", options);
      await page.click("button[value=npz]");
      check(`saved with ${options}`, await shown(page), { status, refusal: "", saved });
    }
    const links = await page.evaluate(() => window.links);
    if (links !== 1) fail(`${links} links to saved files, not 1`);
    await page.close();
    console.log(`saving: options ${OPTIONS.length + rows.length}`);
  }

  async function focus({ browser }) {
    const page = await open(browser), file = path.join(scratch, "large1.caffemodel");
    large(file, 100);
    await slowTexts(page);
    await choose(page, file);
    await readsText(page);
    await page.focus("#options");
    check("typing while the report is drawn", await shown(page), { status: "Ready.", focus: "options" });
    for (const [keys, status] of [[["Enter"], "Saved."], [["Enter", "Cancel"], "Cancelled."]]) {
      await page.focus("button[value=npz]");
      await page.keyboard.press("Enter");
      if (keys.length > 1) {
        await page.focus("#cancel");
        await page.keyboard.press("Enter");
      }
      check(`by the keyboard: ${keys}`, await shown(page), { status, focus: "npz" });
    }
    await page.evaluate(() => document.activeElement.blur());
    await choose(page, model(1));
    check("a model is open", await shown(page), { ...whole(1), focus: "name" });
    await page.close();
    console.log("focus: kept");
  }

  async function starts({ browser }) {
    const failing = await serve(site, { "/syncblob.wasm": { useless: [502, 200] } });
    const slow = await serve(site, { "/page.js": { delay: 1000 } });
    let page = await browser.newPage();
    await page.goto(failing.url);
    for (const reason of ["syncblob.wasm is missing", "syncblob.wasm is damaged"]) {
      check("a server's failure", await shown(page), { refusal: `The page has failed.${reason}` });
      await choose(page, model(1));
    }
    check("after a server's failure", await shown(page), whole(1));
    await page.close();
    page = await browser.newPage();
    await page.goto(slow.url, { waitUntil: "commit" });
    await choose(page, model(1));
    await page.waitForLoadState();
    check("a choice before the script", await shown(page), whole(1));
    await page.close();
    for (const { server } of [failing, slow]) server.close();
    const cut = path.join(scratch, "cut.html");
    fs.writeFileSync(cut, fs.readFileSync(single, "utf8").slice(0, 400000));
    for (const [file, options, text] of [[single, { javaScriptEnabled: false }, "needs JavaScript"], [cut, {}, "this file is cut"]]) {
      page = await browser.newPage(options);
      await page.goto(pathToFileURL(file).href);
      const status = await page.innerText("#status");
      if (!status.includes(text)) fail(`the status lacks "${text}":`, status);
      await page.close();
    }
    console.log("starts: after a failure, early, without scripts, in part");
  }

  async function looks({ browser }) {
    const colours = [["#drop", null, "borderTopColor", 3], ["#options", null, "borderTopColor", 3], ["#options", "::placeholder", "color", 4.5]];
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(browser, { colorScheme });
      await page.evaluate(() => (at("result").hidden = false));
      for (const [element, pseudo, what, least] of colours) {
        const ratio = await page.evaluate(([element, pseudo, what]) => {
          const light = (text) => {
            const [r, g, b] = text.match(/[\d.]+/g).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
          };
          const one = document.querySelector(element);
          const colour = light(getComputedStyle(one, pseudo)[what]), behind = light(getComputedStyle(one).backgroundColor);
          return Math.max(colour, behind) / Math.min(colour, behind);
        }, [element, pseudo, what]);
        if (ratio < least) fail(`${colorScheme}: ${element}${pseudo ?? ""}: the contrast is ${ratio.toFixed(1)}, less than ${least}`);
      }
      await page.close();
    }
    const page = await open(browser, { viewport: { width: 400, height: 900 } });
    for (const files of [[bad], [model(1), net(1)]]) {
      await choose(page, ...files);
      await shown(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      if (wide > 400) fail(`the page is ${wide} pixels wide in a window of 400`);
    }
    await page.emulateMedia({ media: "print" });
    if (await page.isVisible("#report")) fail("on paper the report would be cut");
    await page.emulateMedia({ media: "screen" });
    await page.evaluate(() => Object.defineProperty(Blob.prototype, "size", { get: () => 65 * 2 ** 20 }));
    await choose(page, model(1));
    check("a large report", await shown(page), { status: "Ready. The report is too large", report: false, name: name(1) });
    await page.close();
    console.log("looks: contrast, paper, a large report");
  }

  return { races, choices, drops, saving, focus, starts, looks };
}
