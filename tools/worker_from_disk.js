// SPDX-License-Identifier: MIT
// A page that was opened from disk may not start a worker (its origin is null): the search's code then runs in a frame of the page.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.frame = document.documentElement.appendChild(frame);
      const scope = frame.contentWindow;
      const code = new URL(url, document.baseURI);
      const load = (source) =>
        new Promise((resolve, reject) => {
          const script = scope.document.createElement("script");
          Object.assign(script, { src: new URL(source, code), onload: resolve, onerror: reject });
          scope.document.head.appendChild(script);
        });
      scope.importScripts = (...sources) => sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      scope.postMessage = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      };
      this.ready = load(code);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
