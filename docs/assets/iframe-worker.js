/* A page that is opened from a folder may not start a worker; search then runs in a hidden frame instead. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      const load = (address) => new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        script.src = address;
        script.onload = done;
        script.onerror = failed;
        inside.document.body.appendChild(script);
      });
      inside.__base = url;
      inside.importScripts = (...all) => all.reduce((before, each) => before.then(() => load(new URL(each, url))), Promise.resolve());
      inside.postMessage = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      };
      this.ready = load(url);
      this.inside = inside;
    }
    postMessage(data) {
      this.ready.then(() => {
        const message = new MessageEvent("message", { data });
        const heard = this.inside.onmessage;
        if (heard) heard(message); else this.inside.dispatchEvent(message);
      });
    }
    terminate() { this.frame.remove(); }
  };
}
