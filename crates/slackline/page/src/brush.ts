// What fills rectangles: a canvas, or, for many that are small, a buffer of its pixels.
import { rgb } from "./colour";

export interface Brush { fill(colour: string, x: number, y: number, width: number, height: number): void }

/** Draws on the canvas: edges are smooth, and colours may let others through. */
export function canvasBrush(c: CanvasRenderingContext2D): Brush {
  return { fill(colour, x, y, width, height) { c.fillStyle = colour; c.fillRect(x, y, width, height); } };
}

/** The pixels of a part of a canvas. A canvas takes some microseconds for each rectangle, this for a hundred of them. */
export class Pixels implements Brush {
  private readonly data: Int32Array;
  private readonly image: ImageData;
  /** The colour of the last rectangle: those of a colour come one after another. */
  private colour = "";
  private value = 0;

  constructor(private readonly left: number, private readonly top: number, width: number, height: number, private readonly ratio: number) {
    this.image = new ImageData(Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio)));
    this.data = new Int32Array(this.image.data.buffer);
  }

  fill(colour: string, x: number, y: number, width: number, height: number): void {
    if (colour !== this.colour) this.turn(colour);
    const { ratio, data, image, value } = this;
    const x0 = Math.max(0, Math.round((x - this.left) * ratio)), top = Math.floor((y - this.top) * ratio + 0.001);
    const x1 = Math.min(image.width, Math.max(x0 + 1, Math.round((x + width - this.left) * ratio)));
    const y0 = Math.max(0, top), y1 = Math.min(image.height, top + Math.max(1, Math.round(height * ratio)));
    for (let row = y0 * image.width; row < y1 * image.width; row += image.width) {
      // Most are a few pixels wide: too few to be worth a call.
      if (x1 - x0 > 16) data.fill(value, row + x0, row + x1);
      else for (let k = row + x0; k < row + x1; k++) data[k] = value;
    }
  }

  /** Puts them on the canvas, over what is there. */
  put(c: CanvasRenderingContext2D, scratch: HTMLCanvasElement): void {
    const { image, ratio } = this;
    scratch.width = image.width;
    scratch.height = image.height;
    scratch.getContext("2d")!.putImageData(image, 0, 0);
    c.imageSmoothingEnabled = false;
    c.drawImage(scratch, this.left, this.top, image.width / ratio, image.height / ratio);
  }

  private turn(colour: string): void {
    const [red, green, blue] = rgb(colour);
    this.colour = colour;
    this.value = 0xff << 24 | blue << 16 | green << 8 | red;
  }
}
