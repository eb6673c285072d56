//! Controls headless Chromium over a pipe, by Chrome's DevTools protocol.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{json, Value};

pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    messages: u64,
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// If Chromium is not installed, prints a note and returns None.
    pub fn start() -> Option<Self> {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let is_there = |name: &&str| {
            let found = Command::new(name).arg("--version").output();
            found.is_ok_and(|output| output.status.success())
        };
        let Some(name) = names.iter().find(|name| is_there(name)) else {
            eprintln!("not tested: none of {} is installed", names.join(", "));
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // The protocol uses the descriptors 3 and 4.
        let command = "exec timeout 120 \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";
        let mut process = Command::new("sh")
            .args(["-c", command, "sh", name, "--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let to = process.stdin.take().unwrap();
        let from = BufReader::new(process.stdout.take().unwrap());
        let mut browser = Self {
            process,
            to,
            from,
            session: None,
            messages: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        browser.session = Some(attached["sessionId"].as_str().unwrap().into());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.messages += 1;
        let mut message = json!({ "id": self.messages, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        write!(self.to, "{message}\0").unwrap();
        loop {
            let message = self.receive();
            if message["id"] == self.messages {
                assert_eq!(message["error"], Value::Null, "{method}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn receive(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&bytes).unwrap()
    }

    pub fn open(&mut self, file: &Path) {
        self.events.clear();
        self.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive();
            self.events.push(event);
        }
    }

    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", parameters);
        assert_eq!(answer["exceptionDetails"], Value::Null, "{expression}");
        answer["result"]["value"].clone()
    }

    pub fn complaints(&mut self) -> Vec<String> {
        self.evaluate("0"); // waits for messages in flight
        let is_complaint = |event: &&Value| {
            ["Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"]
                .iter()
                .any(|method| event["method"] == *method)
        };
        self.events.iter().filter(is_complaint).map(Value::to_string).collect()
    }

    pub fn requests(&self) -> Vec<String> {
        let requests = self.events.iter().filter(|e| e["method"] == "Network.requestWillBeSent");
        requests.map(|e| e["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }

    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            _ => (13, "\r"),
        };
        for (kind, text) in [("keyDown", text), ("keyUp", "")] {
            let event =
                json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    pub fn prefer(&mut self, colours: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": colours }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    pub fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    pub fn screenshot(&mut self) -> String {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        answer["data"].as_str().unwrap().into()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = write!(self.to, "{}\0", json!({ "id": 0, "method": "Browser.close" }));
        let _ = self.process.wait();
    }
}
