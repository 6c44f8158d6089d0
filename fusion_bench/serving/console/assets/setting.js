// The setting: in the address behind "#", and the settings before it, for undo and redo.

const KEY = "setting=";

/** The setting of an address; null = it has none that can be read. */
export function readAddress(hash) {
  if (!hash.startsWith(`#${KEY}`)) return null;
  try {
    const setting = JSON.parse(decodeURIComponent(hash.slice(KEY.length + 1)));
    const isSetting = typeof setting?.system === "string" && typeof setting.parameters === "object";
    return isSetting && setting.parameters ? makeSetting(setting.system, setting.parameters) : null;
  } catch {
    return null;
  }
}

/** What stands behind the "#" of an address. */
export function addressOf(setting) {
  return `#${KEY}${encodeURIComponent(JSON.stringify(setting))}`;
}

export function makeSetting(system, parameters = {}) {
  return { system, parameters: { ...parameters } };
}

export function isSame(a, b) {
  return a !== null && b !== null && addressOf(a) === addressOf(b);
}

/**
 * The setting with another value. A method or a dialect takes the values below it along: they may
 * not exist there.
 */
export function replaceValue(setting, control, value) {
  const { path } = control;
  const below = control.path === "dialect" ? "" : path.replace(/method$/, "");
  const kept = Object.entries(setting.parameters).filter(
    ([other]) => !(control.structural && other !== path && other.startsWith(below)),
  );
  return makeSetting(setting.system, { ...Object.fromEntries(kept), [path]: value });
}

/** The setting with a value of the system itself. */
export function resetValue(setting, control) {
  const below = control.path === "dialect" ? "" : control.path.replace(/method$/, "");
  const kept = Object.entries(setting.parameters).filter(([path]) =>
    control.structural ? !path.startsWith(below) : path !== control.path);
  return makeSetting(setting.system, Object.fromEntries(kept));
}

/** Settings that were committed: while a slider is dragged, the one before stays the same. */
export class History {
  constructor(setting) {
    this.past = [];
    this.future = [];
    this.current = setting;
  }

  /** The newest setting before this one that the server could answer; null = there is none. */
  before(setting, isAnswerable) {
    const earlier = [...this.past, this.current].filter((each) => !isSame(each, setting));
    return earlier.reverse().find(isAnswerable) ?? null;
  }

  /** Keep a setting, if it is another one. */
  commit(setting) {
    if (isSame(setting, this.current)) return;
    this.past.push(this.current);
    this.future = [];
    this.current = setting;
  }

  undo() {
    return this.move(this.past, this.future);
  }

  redo() {
    return this.move(this.future, this.past);
  }

  move(from, to) {
    if (!from.length) return null;
    to.push(this.current);
    this.current = from.pop();
    return this.current;
  }
}
