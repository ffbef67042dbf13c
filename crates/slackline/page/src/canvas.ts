// What timelines draw alike.

/** A text within a box, cut where the box ends, and readable on any colour. */
export function named(c: CanvasRenderingContext2D, text: string, [x, y, wide, tall]: [number, number, number, number]): void {
  c.save();
  c.beginPath();
  c.rect(x, y, wide - 2, tall);
  c.clip();
  c.fillStyle = "#fff";
  c.shadowColor = "rgba(0,0,0,0.85)";
  c.shadowBlur = 2;
  c.fillText(text, x + 3, y + tall / 2 + 4);
  c.restore();
}
