// Colours that people with any colour vision tell apart: those of Okabe and Ito, then of Tol.

const FLOWS = [
  "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
  "#8a7f00", "#5b4bb5", "#44aa99", "#a0456f", "#7a8b2e",
];
const OTHER = "#8d949c";
export const POLICIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#7f7f7f", "#5b4bb5"];
/** Lines differ without colours, too. */
export const DASHES = ["", "7 3", "2 2", "9 3 2 3", "12 4", "4 4 1 4", "1 3", "6 2 2 2"];

export const FATES = { met: "#0072b2", late: "#d55e00", free: "#8d949c", failed: "#8a2d6b" };
export const FATE_WORDS = { met: "deadline met", late: "late", free: "no deadline", failed: "failed" };

export const KINDS = { map: "#0072b2", reduce: "#e69f00" };

export function policyColour(k: number): string { return POLICIES[k % POLICIES.length]; }
export function dash(k: number): string { return DASHES[k % DASHES.length]; }
export function shareColour(k: number): string { return FLOWS[k] ?? OTHER; }

export function isDark(): boolean {
  const asked = document.documentElement.dataset.theme;
  return asked ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** A colour of the style sheet, for canvases. */
export function styled(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Red, green and blue of `#rrggbb` or `#rgb`. */
export function rgb(colour: string): [number, number, number] {
  const hex = colour.length === 4 ? [...colour.slice(1)].map((digit) => digit + digit).join("") : colour.slice(1);
  const value = parseInt(hex, 16);
  return [value >> 16, value >> 8 & 255, value & 255];
}

/** So much of one colour in another. */
export function mixed(colour: string, share: number, other: string): string {
  const one = rgb(colour), two = rgb(other);
  return `#${one.map((part, k) => Math.round(part * share + two[k] * (1 - share)).toString(16).padStart(2, "0")).join("")}`;
}
