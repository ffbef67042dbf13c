// What timelines draw alike.

/** A text within a box, cut where the box ends, and readable on any colour. */
export function named(c: CanvasRenderingContext2D, text: string, [x, y, wide, tall]: [number, number, number, number]): void {
  c.save();
  c.beginPath();
  c.rect(x, y, wide - 2, tall);
  c.clip();
  // An outline: a shadow takes a hundred times as long to draw.
  c.strokeStyle = "rgba(0,0,0,0.75)";
  c.lineWidth = 2.5;
  c.lineJoin = "round";
  c.strokeText(text, x + 3, y + tall / 2 + 4);
  c.fillStyle = "#fff";
  c.fillText(text, x + 3, y + tall / 2 + 4);
  c.restore();
}
