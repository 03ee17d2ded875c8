// Search from disk: browsers start no worker from a page that was opened as a file, so there a hidden frame does the work.
// The theme looks for this file's name and for `IFrameWorker`. On a served site it changes nothing.
"use strict";
(() => {
  if (location.protocol !== "file:") return;

  class IFrameWorker extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      frame.srcdoc = "<!doctype html>";
      frame.addEventListener("load", () => this.begin(frame.contentWindow, String(address)), { once: true });
      document.documentElement.append(frame);
    }

    begin(inside, address) {
      const load = (source) =>
        new Promise((loaded, failed) => {
          const script = inside.document.createElement("script");
          script.src = source;
          script.onload = loaded;
          script.onerror = () => failed(new Error("cannot load " + source));
          inside.document.head.append(script);
        });
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = async (...sources) => {
        for (const source of sources) await load(source);
      };
      load(address).then(() => {
        this.send = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
        this.waiting.forEach(this.send);
      });
    }

    postMessage(data) {
      if (this.send) this.send(data);
      else this.waiting.push(data);
    }
  }

  window.IFrameWorker = window.Worker = IFrameWorker;
})();
