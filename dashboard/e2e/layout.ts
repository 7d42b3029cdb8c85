import type { Page } from "playwright";

/** The widths at which the pages are checked: a phone, a tablet, a laptop and a large screen. */
export const WIDTHS = [390, 820, 1440, 2560] as const;

/**
 * What of a page cannot be read or reached at its width, in words.
 *
 * The page must not scroll sideways, and no part of it may stand outside of it, unless that part is in a box that
 * scrolls. Text that is cut must end with an ellipsis. Drawings cut themselves, as they are made to.
 */
export function misplaced(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found = new Set<string>();
    const say = (what: string, element: Element) => found.add(`${what}: ${element.tagName} ${element.className} "${element.textContent?.trim().slice(0, 40) ?? ""}"`);
    const scrolls = (element: Element | null): boolean =>
      element !== null && element !== document.documentElement && (/auto|scroll/.test(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
    const excess = document.documentElement.scrollWidth - innerWidth;
    if (excess > 0) say(`the page scrolls sideways by ${excess} px`, document.body);
    for (const element of document.querySelectorAll("header *, main *")) {
      const { left, right, width, height } = element.getBoundingClientRect();
      const style = getComputedStyle(element);
      if (width < 2 || height < 2 || style.visibility === "hidden" || element.closest("svg") !== null) continue;
      if ((right > innerWidth + 1 || left < -1) && !scrolls(element.parentElement)) say("outside of the page", element);
      const cut = element.scrollWidth > element.clientWidth + 1 && /hidden|clip/.test(style.overflowX);
      if (cut && style.textOverflow !== "ellipsis" && element.children.length === 0) say("cut", element);
    }
    return [...found];
  });
}
