#!/usr/bin/env python3
"""Draw the schematic figures of the invented teaching cases.

Usage: python tools/teaching_figures.py [OUTPUT_DIR]

Every figure is a drawing made from the table FIGURES below; none is derived
from a patient, a scan or a published picture. The output is deterministic:
no random numbers, only the bitmap font built into Pillow, a fixed palette.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT, SCALE = 480, 320, 3
DEFAULT_OUT = Path(__file__).resolve().parent.parent / "src" / "hoofbeat" / "teaching" / "cases" / "figures"
MARK = "invented figure"

Point = tuple[float, float]
Colour = tuple[int, int, int]

BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)
RED: Colour = (178, 34, 34)
BLUE: Colour = (38, 84, 140)


def grey(level: int) -> Colour:
    return (level, level, level)


def _palette() -> Image.Image:
    """16 greys and two 8-step tints; everything is mapped onto these."""
    colours = [grey(17 * i) for i in range(16)]
    for tint in (RED, BLUE):
        for i in range(8):
            a, b, c = (round(x + (255 - x) * i / 8) for x in tint)
            colours.append((a, b, c))
    flat = [x for colour in colours for x in colour]
    image = Image.new("P", (1, 1))
    image.putpalette(flat)
    return image


class Canvas:
    """A 480 x 320 drawing surface, drawn at three times its size."""

    def __init__(self, background: Colour = WHITE) -> None:
        self.image = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), background)
        self.draw = ImageDraw.Draw(self.image)
        self.texts: list[tuple[float, float, str, Colour, str]] = []
        self.mark_colour = grey(136) if background == WHITE else grey(170)

    @staticmethod
    def _up(points: Sequence[Point]) -> list[Point]:
        return [(x * SCALE, y * SCALE) for x, y in points]

    def line(self, points: Sequence[Point], colour: Colour = BLACK, width: float = 1.5) -> None:
        self.draw.line(self._up(points), fill=colour, width=round(width * SCALE), joint="curve")

    def dashed(self, a: Point, b: Point, colour: Colour = BLACK, width: float = 1.5, dash: float = 6) -> None:
        n = max(1, round(math.dist(a, b) / dash))
        for i in range(0, n, 2):
            f, g = i / n, min(1.0, (i + 1) / n)
            self.line(
                [
                    (a[0] + (b[0] - a[0]) * f, a[1] + (b[1] - a[1]) * f),
                    (a[0] + (b[0] - a[0]) * g, a[1] + (b[1] - a[1]) * g),
                ],
                colour,
                width,
            )

    def ellipse(
        self,
        x: float,
        y: float,
        rx: float,
        ry: float,
        fill: Colour | None = None,
        colour: Colour | None = BLACK,
        width: float = 1.5,
    ) -> None:
        box = [(x - rx) * SCALE, (y - ry) * SCALE, (x + rx) * SCALE, (y + ry) * SCALE]
        self.draw.ellipse(box, fill=fill, outline=colour, width=round(width * SCALE))

    def rect(
        self,
        x0: float,
        y0: float,
        x1: float,
        y1: float,
        fill: Colour | None = None,
        colour: Colour | None = BLACK,
        width: float = 1.5,
    ) -> None:
        self.draw.rectangle(
            [x0 * SCALE, y0 * SCALE, x1 * SCALE, y1 * SCALE], fill=fill, outline=colour, width=round(width * SCALE)
        )

    def poly(
        self, points: Sequence[Point], fill: Colour | None = None, colour: Colour | None = BLACK, width: float = 1.5
    ) -> None:
        if fill is not None:
            self.draw.polygon(self._up(points), fill=fill)
        if colour is not None:
            self.line([*points, points[0], points[1]], colour, width)

    def blob(
        self,
        x: float,
        y: float,
        rx: float,
        ry: float,
        wave: float = 0.0,
        lobes: int = 5,
        fill: Colour | None = None,
        colour: Colour | None = BLACK,
        width: float = 1.5,
        turn: float = 0.0,
    ) -> None:
        """A closed curve around (x, y) whose radius swings by `wave`."""
        points = []
        for i in range(120):
            t = 2 * math.pi * i / 120
            r = 1 + wave * math.sin(lobes * t + turn)
            points.append((x + rx * r * math.cos(t), y + ry * r * math.sin(t)))
        self.poly(points, fill, colour, width)

    def arrow(self, a: Point, b: Point, colour: Colour = RED, width: float = 1.8) -> None:
        self.line([a, b], colour, width)
        angle = math.atan2(b[1] - a[1], b[0] - a[0])
        head = [b] + [(b[0] - 8 * math.cos(angle + d), b[1] - 8 * math.sin(angle + d)) for d in (0.45, -0.45)]
        self.poly(head, fill=colour, colour=None)

    def text(self, x: float, y: float, words: str, colour: Colour = BLACK, anchor: str = "left") -> None:
        self.texts.append((x, y, words, colour, anchor))

    def save(self, path: Path) -> None:
        image = self.image.resize((WIDTH, HEIGHT), Image.Resampling.BOX)
        draw = ImageDraw.Draw(image)
        draw.fontmode = "1"
        font = ImageFont.load_default_imagefont()
        notes = [*self.texts, (WIDTH - 6, HEIGHT - 13, MARK, self.mark_colour, "right")]
        for x, y, words, colour, anchor in notes:
            length = draw.textlength(words, font=font)
            shift = {"left": 0.0, "centre": length / 2, "right": length}[anchor]
            draw.text((round(x - shift), round(y)), words, fill=colour, font=font)
        small = image.quantize(palette=_palette(), dither=Image.Dither.NONE)
        small.save(path, format="PNG", optimize=True)


# --- charts ---------------------------------------------------------------


def line_chart(c: Canvas, p: dict[str, Any]) -> None:
    """Time course. series: [(name, points)], second series on the right-hand axis."""
    left, top, right, bottom = 62.0, 34.0, 440.0, 250.0
    x0, x1 = (float(v) for v in p["x"])
    axes: list[Point] = [p["y"], p.get("y2", p["y"])]

    def px(x: float) -> float:
        return left + (x - x0) / (x1 - x0) * (right - left)

    def py(y: float, axis: int = 0) -> float:
        lo, hi = axes[axis]
        return bottom - (y - lo) / (hi - lo) * (bottom - top)

    if "band" in p:
        lo, hi = p["band"]
        c.rect(left, py(hi), right, py(lo), fill=grey(221), colour=None)
    if "xband" in p:
        lo, hi = p["xband"]
        c.rect(px(lo), top, px(hi), bottom, fill=grey(204), colour=None)
    for y in p["yticks"]:
        c.line([(left, py(y)), (right, py(y))], grey(221), 0.7)
        c.text(left - 6, py(y) - 5, f"{y:g}", anchor="right")
    for y in p.get("y2ticks", []):
        c.text(right + 5, py(y, 1) - 5, f"{y:g}", colour=BLUE)
    for x in p["xticks"]:
        c.line([(px(x), bottom), (px(x), bottom + 4)], width=1)
        c.text(px(x), bottom + 6, f"{x:g}", anchor="centre")
    if "hline" in p:
        c.dashed((left, py(p["hline"])), (right, py(p["hline"])), RED)
    c.line([(left, top), (left, bottom), (right, bottom)])
    for axis, (name, points) in enumerate(p["series"]):
        colour = BLACK if axis == 0 else BLUE
        xy = [(px(x), py(y, axis if "y2" in p else 0)) for x, y in points]
        c.line(xy, colour, 2.2)
        if not p.get("bare"):
            for x, y in xy:
                c.ellipse(x, y, 3.2, 3.2, fill=colour, colour=colour)
        if name and axis:
            c.text(right, 16, name, colour, "right")
    for x, y, label, anchor in p.get("arrows", []):
        c.arrow((px(x), py(y) - 34), (px(x), py(y) - 8))
        shift = {"left": 4, "centre": 0, "right": -4}[anchor]
        c.text(px(x) + shift, py(y) - 46, label, RED, anchor)
    for x in p.get("marks", []):
        c.poly([(px(x), bottom - 3), (px(x) - 5, bottom - 12), (px(x) + 5, bottom - 12)], fill=RED, colour=None)
    for row, (a, b, label, shade) in enumerate(p.get("bars", [])):
        y = bottom + 20 + row * 13
        c.rect(px(a), y, px(b), y + 6, fill=grey(shade), colour=None)
        if px(b) < right - 60:
            c.text(px(b) + 5, y - 3, label)
        else:
            c.text(px(a) - 5, y - 3, label, anchor="right")
    c.text(left - 40, 16, p["ylabel"])
    if p.get("bars"):
        c.text(left, HEIGHT - 26, p["xlabel"])
    else:
        c.text((left + right) / 2, bottom + 24, p["xlabel"], anchor="centre")


def bar_chart(c: Canvas, p: dict[str, Any]) -> None:
    left, top, right, bottom = 62.0, 40.0, 440.0, 240.0
    log = p.get("log", False)
    lo, hi = p["y"]

    def py(y: float) -> float:
        f = math.log(y / lo) / math.log(hi / lo) if log else (y - lo) / (hi - lo)
        return bottom - f * (bottom - top)

    for y in p["yticks"]:
        c.line([(left, py(y)), (right, py(y))], grey(221), 0.7)
        c.text(left - 6, py(y) - 5, f"{y:g}", anchor="right")
    step = (right - left) / len(p["bars"])
    for i, (label, value) in enumerate(p["bars"]):
        mid = left + step * (i + 0.5)
        c.rect(mid - step * 0.26, py(value), mid + step * 0.26, bottom, fill=grey(153 if i % 2 == 0 else 102), width=1)
        c.text(mid, py(value) - 13, f"{value:g}", anchor="centre")
        for row, part in enumerate(label.split("/")):
            c.text(mid, bottom + 7 + 12 * row, part, anchor="centre")
    c.line([(left, top), (left, bottom), (right, bottom)])
    c.text(left - 40, 18, p["ylabel"])


# --- traces ---------------------------------------------------------------


def broad_tachycardia(c: Canvas, p: dict[str, Any]) -> None:
    for x in range(20, 461, 8):
        c.line([(x, 40), (x, 280)], (240, 224, 224) if (x - 20) % 40 else (222, 190, 190), 0.6)
    for y in range(40, 281, 8):
        c.line([(20, y), (460, y)], (240, 224, 224) if (y - 40) % 40 else (222, 190, 190), 0.6)
    # 25 mm/s, 8 px per mm square: 200 px per second
    period = 200 * 60 / p["rate"]
    for base, size, sign in ((105, 40, 1), (215, 34, -1)):
        points = []
        for i in range(0, 881):
            t = (i / 2 % period) / period
            swing = math.sin(2 * math.pi * t) + 0.45 * math.sin(4 * math.pi * t + 0.8)
            points.append((20 + i / 2, base - sign * size * swing))
        c.line(points, BLACK, 1.8)
    c.text(24, 44, "II")
    c.text(24, 156, "V1")
    c.text(20, 22, f"{p['rate']} beats/min, 25 mm/s")


def eeg(c: Canvas, p: dict[str, Any]) -> None:
    names = ("F7-T3", "T3-T5", "F8-T4", "T4-T6")
    for row, name in enumerate(names):
        base = 70 + row * 58
        start, end = p["left"] if row < 2 else p["right"]
        points = []
        for i in range(0, 801):
            x = 60 + i / 2
            f = (x - 60) / 400
            y = 3 * math.sin(x * 0.35 + row * 2.1) + 2 * math.sin(x * 0.83 + row)
            if start < f < end:
                grow = math.sin(math.pi * (f - start) / (end - start)) ** 0.7
                wave = abs((x * 0.11) % 2 - 1) * 2 - 1
                y += grow * (22 if row % 2 == 0 else 16) * wave
            points.append((x, base - y))
        c.line(points, BLACK, 1.3)
        c.text(14, base - 5, name)
    c.line([(60, 292), (100, 292)], BLACK, 2)
    c.text(104, 286, "1 s")
    c.text(60, 20, "left-sided seizure")
    c.text(460, 20, "right-sided seizure", anchor="right")


def nerve_stimulation(c: Canvas, p: dict[str, Any]) -> None:
    for i, size in enumerate(p["percent"]):
        x0 = 40 + i * 44
        points = [
            (x0 + k / 2, 190 - 120 * size / 100 * math.sin(math.pi * k / 36) * (1 if k <= 36 else 0.45))
            for k in range(0, 73)
        ]
        c.line([(x0 - 6, 190), *points, (x0 + 38, 190)], BLACK, 1.8)
        c.text(x0 + 9, 256, f"{size}%", anchor="centre")
    c.dashed((34, 190 - 120), (446, 190 - 120), grey(136), 1)
    c.text(34, 30, "Repetitive stimulation 3 Hz, facial nerve; amplitude as % of first")


def actigraphy(c: Canvas, p: dict[str, Any]) -> None:
    for day in range(1, 11):
        y = 38 + day * 24
        c.text(56, y - 14, f"day {day}", anchor="right")
        c.line([(62, y), (460, y)], grey(170), 0.7)
        awake = day >= p["recovery"]
        for k in range(96):
            hour = k / 4
            active = 7.5 < hour < 22 if awake else (12 < hour < 13.5 or 18.5 < hour < 20.5)
            noise = (k * 37 + day * 53) % 17
            h = 4 + noise if active else (2 if noise < 2 else 0)
            if h:
                x = 62 + k * 398 / 96
                c.line([(x, y), (x, y - h)], BLACK, 2.2)
    for hour in (0, 6, 12, 18, 24):
        c.text(62 + hour * 398 / 24, 284, f"{hour} h", anchor="centre")
    c.text(62, 18, "Wrist activity (as published; retracted)", RED)


def pedigree(c: Canvas, p: dict[str, Any]) -> None:
    """people: (x, y, sex, state, label); state: carrier, affected, dead, healthy."""
    for a, b in p["couples"]:
        gaps = (-3, 3) if p.get("consanguineous") else (0,)
        for d in gaps:
            c.line([(a[0], a[1] + d), (b[0], b[1] + d)])
    for points in p["lines"]:
        c.line(points)
    for x, y, sex, state, label in p["people"]:
        fill = BLACK if state in ("affected", "dead") else WHITE
        if sex == "m":
            c.rect(x - 18, y - 18, x + 18, y + 18, fill=fill, width=2)
            if state == "carrier":
                c.rect(x - 18, y - 18, x, y + 18, fill=BLACK)
        else:
            c.ellipse(x, y, 18, 18, fill=fill, width=2)
            if state == "carrier":
                c.draw.pieslice(
                    [(x - 18) * SCALE, (y - 18) * SCALE, (x + 18) * SCALE, (y + 18) * SCALE], 90, 270, fill=BLACK
                )
        if state == "dead":
            c.line([(x - 26, y + 26), (x + 26, y - 26)], BLACK, 2)
            c.line([(x - 12, y + 12), (x + 12, y - 12)], WHITE, 1)
        c.text(x, y + 26, label, anchor="centre")
    x, y = p["proband"]
    c.arrow((x - 52, y + 36), (x - 22, y + 16))


# --- schematic anatomy ------------------------------------------------------


def short_axis(c: Canvas, _: dict[str, Any]) -> None:
    c.ellipse(270, 165, 108, 108, fill=grey(187))
    c.blob(160, 160, 62, 88, 0.05, 3, fill=grey(238))
    c.ellipse(270, 165, 108, 108, fill=grey(187))
    points = [(270 + 108 * math.cos(t), 165 + 108 * math.sin(t)) for t in [math.radians(d) for d in range(142, 219, 2)]]
    inner = [(270 + 70 * math.cos(t), 165 + 70 * math.sin(t)) for t in [math.radians(d) for d in range(218, 141, -2)]]
    c.poly(points + inner, fill=RED)
    c.ellipse(270, 165, 70, 70, fill=WHITE)
    c.text(270, 160, "LV", anchor="centre")
    c.text(132, 160, "RV", anchor="centre")
    c.line([(188, 132), (120, 48)], RED, 1)
    c.text(60, 34, "target, 25 Gy (basal septum)", RED)


def blood_film(c: Canvas, p: dict[str, Any]) -> None:
    for row in range(5):
        for col in range(8):
            x = 38 + col * 57 + (row % 2) * 18 + (row * 13 + col * 7) % 9
            y = 40 + row * 56 + (row * 5 + col * 11) % 8
            c.ellipse(x, y, 23, 22, fill=(228, 205, 205), colour=grey(136), width=1)
            if (row, col) == (2, 3):
                for dx, dy in ((8, 0), (-8, 0), (0, 8), (0, -8)):
                    c.ellipse(x + dx, y + dy, 5, 5, fill=BLUE, colour=None)
            elif (row * 8 + col) in p["ringed"]:
                c.ellipse(x + 4, y - 3, 6, 6, colour=BLUE, width=2)
                c.ellipse(x + 9, y - 7, 2.4, 2.4, fill=RED, colour=None)


def glomerulus(c: Canvas, _: dict[str, Any]) -> None:
    c.ellipse(270, 160, 140, 122, fill=grey(238))
    for i in range(14):
        t = i * 2.4
        r = 20 + i * 6.4
        x, y = 275 + r * math.cos(t), 160 + 0.86 * r * math.sin(t)
        c.ellipse(x, y, 21, 19, fill=WHITE, colour=grey(102))
        if i % 3 != 1:
            c.blob(x, y, 12, 11, 0.15, 4, fill=(120, 30, 30), colour=None, turn=float(i))
    for r in (40, 33, 26, 19, 12):
        c.ellipse(90, 160, r, r, colour=grey(68), width=1.6)
    c.ellipse(90, 160, 5, 5, fill=(120, 30, 30), colour=None)
    c.text(90, 206, "onion-skin arteriole", anchor="centre")
    c.text(270, 288, "glomerulus, capillary thrombi dark", anchor="centre")


def portal_cavernoma(c: Canvas, _: dict[str, Any]) -> None:
    c.poly([(60, 120), (90, 60), (210, 45), (290, 60), (250, 110), (170, 140), (100, 150)], fill=grey(204))
    c.text(130, 90, "liver")
    duodenum = [(300, 110), (225, 112), (190, 130), (180, 180), (190, 235), (240, 256), (330, 250)]
    c.line(duodenum, grey(102), 34)
    c.line(duodenum, grey(238), 29)
    for dx in (-16, -6, 5, 14):
        c.line([(262 + dx + 5 * math.sin(k / 2.2 + dx), 225 - k * 3) for k in range(0, 48)], BLUE, 2.4)
    c.text(284, 150, "collaterals instead", BLUE)
    c.text(284, 163, "of portal vein", BLUE)
    c.line([(258, 214), (232, 206), (206, 196), (190, 188)], BLUE, 5)
    c.blob(184, 188, 15, 24, 0.08, 4, fill=RED)
    c.arrow((96, 214), (164, 194))
    c.text(30, 216, "varix 14 mm", RED)
    c.text(300, 268, "duodenum")


def endosonography(c: Canvas, _: dict[str, Any]) -> None:
    for i, x0 in enumerate((120, 360)):
        fan = [(x0, 42)] + [
            (x0 + 225 * math.sin(a), 42 + 225 * math.cos(a)) for a in [math.radians(d) for d in range(-28, 29, 2)]
        ]
        c.poly(fan, fill=grey(68), colour=None)
        c.ellipse(x0, 160, 38, 30, fill=BLACK, colour=grey(170))
        if i == 0:
            for k in range(6):
                c.ellipse(x0 - 20 + 8 * k, 160 + 5 * (-1) ** k, 7, 9, fill=RED if k % 2 else BLUE, colour=None)
            c.text(x0, 276, "before: flow in varix", WHITE, "centre")
        else:
            for k in range(2):
                c.line(
                    [
                        (x0 - 22 + 26 * k + 11 * math.cos(t / 3), 152 + t * 0.55 + 8 * math.sin(t / 3))
                        for t in range(0, 34)
                    ],
                    WHITE,
                    1.8,
                )
            c.blob(x0 + 2, 166, 16, 10, 0.12, 5, fill=grey(204), colour=None)
            c.text(x0, 276, "after: coils and glue", WHITE, "centre")


def chest_slice(c: Canvas, p: dict[str, Any]) -> None:
    c.ellipse(240, 160, 205, 125, fill=grey(153), colour=grey(204))
    for x in (145, 335):
        c.blob(x, 158, 78, 88, 0.04, 2, fill=grey(34), colour=grey(187))
    c.blob(245, 150, 38, 46, 0.06, 3, fill=grey(170), colour=None)
    c.ellipse(240, 248, 20, 18, fill=grey(238), colour=None)
    for x, y, rx, ry in p.get("glass", []):
        c.blob(x, y, rx, ry, 0.14, 4, fill=grey(119), colour=None, turn=x)
        for k in range(-3, 4):
            c.line([(x + k * rx / 4 - 5, y - ry * 0.75), (x + k * rx / 4 + 5, y + ry * 0.75)], grey(187), 0.9)
            c.line([(x - rx * 0.75, y + k * ry / 4 + 4), (x + rx * 0.75, y + k * ry / 4 - 4)], grey(187), 0.9)
    for x, y, r in p.get("nodules", []):
        c.ellipse(x, y, r, r, fill=grey(204), colour=None)
        c.ellipse(x, y, r + 11, r + 11, colour=RED, width=2)
    c.text(14, 14, "R", WHITE)
    c.text(458, 14, "L", WHITE)


def chest_coronal(c: Canvas, p: dict[str, Any]) -> None:
    c.poly(
        [(70, 300), (82, 120), (130, 62), (200, 40), (280, 40), (350, 62), (398, 120), (410, 300)],
        fill=grey(136),
        colour=None,
    )
    for sign in (-1, 1):
        x = 240 + sign * 88
        c.poly(
            [
                (x - sign * 30, 70),
                (x + sign * 20, 80),
                (x + sign * 56, 150),
                (x + sign * 64, 262),
                (x, 244),
                (x - sign * 52, 250),
                (x - sign * 48, 130),
            ],
            fill=grey(34),
            colour=grey(187),
        )
    c.blob(258, 205, 40, 52, 0.06, 3, fill=grey(170), colour=None)
    c.rect(232, 30, 248, 128, fill=grey(51), colour=grey(170))
    for x, y, r in p["nodules"]:
        c.ellipse(x, y, r, r, fill=grey(221), colour=None)
    c.text(14, 14, "R", WHITE)
    c.text(458, 14, "L", WHITE)


def brain_axial(c: Canvas, p: dict[str, Any]) -> None:
    c.ellipse(240, 160, 122, 145, fill=grey(238), colour=grey(85), width=5)
    c.blob(240, 160, 106, 128, 0.02, 22, fill=grey(187))
    c.dashed((240, 34), (240, 110), grey(85), 1.2)
    for s in (-1, 1):
        c.poly(
            [(240 + s * 8, 120), (240 + s * 30, 100), (240 + s * 26, 150), (240 + s * 10, 170)],
            fill=grey(68),
            colour=None,
        )
        c.blob(240 + s * 30, 178, 17, 24, 0.05, 3, fill=grey(153), colour=grey(119), width=1)
    c.blob(240, 222, 32, 22, 0.05, 2, fill=grey(153), colour=grey(119), width=1)
    for x, y, state in p["lesions"]:
        c.ellipse(x, y, 7, 7, fill=RED if state == "new" else WHITE, colour=RED if state == "new" else BLACK, width=2)
    c.arrow((395, 250), (262, 224))
    c.text(400, 244, "recent", RED)
    c.text(400, 256, "lesion", RED)


def brain_sagittal(c: Canvas, _: dict[str, Any]) -> None:
    c.blob(235, 125, 150, 92, 0.03, 16, fill=grey(204))
    c.line([(150, 140), (190, 108), (260, 104), (310, 130)], grey(102), 8)
    c.blob(335, 218, 52, 36, 0.05, 12, fill=grey(187))
    c.poly(
        [(235, 165), (268, 160), (282, 200), (274, 232), (268, 300), (244, 300), (242, 240), (226, 212)], fill=grey(221)
    )
    c.ellipse(250, 214, 9, 9, fill=(70, 0, 0), colour=BLACK)
    c.ellipse(250, 214, 13, 13, colour=RED, width=1.5)
    c.arrow((118, 262), (232, 220))
    c.text(30, 264, "cavernoma in pons", RED)


def body_map(c: Canvas, p: dict[str, Any]) -> None:
    for i, x in enumerate((150, 330)):
        shade = RED
        body = grey(238)
        c.ellipse(x, 48, 19, 23, fill=body)
        c.poly([(x - 36, 78), (x + 36, 78), (x + 28, 168), (x - 28, 168)], fill=body)
        for s in (-1, 1):
            c.poly(
                [(x + s * 37, 78), (x + s * 52, 88), (x + s * 60, 176), (x + s * 50, 178), (x + s * 33, 108)], fill=body
            )
            c.poly([(x + s * 2, 168), (x + s * 28, 168), (x + s * 24, 296), (x + s * 10, 296)], fill=body)
            c.poly([(x + s * 38, 86), (x + s * 50, 92), (x + s * 53, 128), (x + s * 38, 118)], fill=shade, colour=None)
            c.poly([(x + s * 6, 174), (x + s * 24, 174), (x + s * 22, 214), (x + s * 9, 210)], fill=shade, colour=None)
        c.blob(x, 116, 25, 32, 0.12, 5, fill=shade, colour=None, turn=float(i))
        c.text(x, 302, ("front", "back")[i], anchor="centre")
    c.text(240, 14, f"day 2: detachment {p['percent']}% of body surface", RED, "centre")


def eye_front(c: Canvas, _: dict[str, Any]) -> None:
    c.poly(
        [(40, 165), (130, 75), (240, 48), (350, 75), (440, 165), (350, 245), (240, 275), (130, 245)],
        fill=(240, 214, 214),
    )
    c.ellipse(240, 160, 98, 98, fill=grey(153), width=2)
    c.ellipse(240, 160, 40, 40, fill=grey(34))
    c.draw.chord([142 * SCALE, 62 * SCALE, 338 * SCALE, 258 * SCALE], 50, 130, fill=(238, 238, 214))
    points = []
    for i in range(240):
        t = 2 * math.pi * i / 240
        r = 46 + (9 if i % 6 < 3 else 0) + 4 * math.sin(5 * t)
        points.append((246 + r * math.cos(t), 150 + r * math.sin(t)))
    c.poly(points, fill=WHITE, colour=grey(136), width=0.8)
    for x, y in ((176, 118), (302, 200)):
        c.blob(x, y, 9, 9, 0.2, 7, fill=WHITE, colour=grey(136), width=0.8)
    c.text(352, 262, "hypopyon")
    c.line([(350, 264), (262, 246)], BLACK, 1)
    c.text(24, 62, "satellite lesion")
    c.line([(112, 74), (168, 113)], BLACK, 1)
    c.text(474, 50, "infiltrate 5.2 x 4.8 mm", anchor="right")
    c.line([(372, 64), (284, 128)], BLACK, 1)


def liver_ultrasound(c: Canvas, _: dict[str, Any]) -> None:
    fan = [(200, 18), (280, 18)] + [
        (240 + 285 * math.sin(a), 10 + 285 * math.cos(a)) for a in [math.radians(d) for d in range(48, -49, -3)]
    ]
    c.poly(fan, fill=grey(85), colour=None)
    for i in range(70):
        x, y = 110 + (i * 67) % 260, 70 + (i * 41) % 190
        c.ellipse(x, y, 1.6, 1.2, fill=grey(119), colour=None)
    c.line([(120, 226), (180, 208), (232, 206), (300, 222)], BLACK, 15)
    c.text(128, 238, "left portal vein", WHITE)
    c.ellipse(262, 150, 48, 42, fill=grey(238), colour=None)
    c.ellipse(262, 150, 36, 30, fill=BLACK, colour=None)
    c.blob(256, 158, 14, 8, 0.1, 2, fill=grey(204), colour=None)
    c.ellipse(270, 153, 6, 6, fill=grey(204), colour=None)
    c.dashed((372, 52), (262, 156), WHITE, 2)
    c.text(376, 44, "needle path", WHITE)
    c.text(300, 192, "sac 38 mm", WHITE)


def lymphangiogram(c: Canvas, _: dict[str, Any]) -> None:
    c.poly([(150, 20), (330, 20), (352, 120), (330, 300), (150, 300), (128, 120)], fill=grey(34), colour=grey(119))
    for i in range(9):
        c.rect(228, 30 + i * 30, 252, 52 + i * 30, fill=grey(68), colour=None)
    for k in range(11):
        low, high = 290 - (k % 3) * 12, 66 + (k * 17) % 60
        x = 165 + k * 15
        points = [(x + 13 * math.sin((low - y) / 17 + k * 1.7), y) for y in range(low, high, -3)]
        c.line(points, grey(221), 2.2 + (k * 5) % 4)
    for s in (-1, 1):
        c.line([(240 + s * 62, 300), (240 + s * 44, 240)], WHITE, 3)
    c.text(362, 80, "mediastinum")
    c.text(362, 220, "retroperitoneum")
    c.text(14, 120, "no thoracic duct", RED)
    c.text(14, 133, "to be seen", RED)


def abdomen_slice(c: Canvas, p: dict[str, Any]) -> None:
    m = -1 if p.get("mirror_labels") else 1
    c.ellipse(240, 160, 208, 132, fill=grey(136), colour=grey(204))
    c.blob(128, 136, 82, 88, 0.08, 3, fill=grey(170), colour=None)
    for k in range(4):
        c.line([(100 + k * 16, 96 + k * 10), (132 + k * 8, 108 + k * 6)], BLACK, 4)
    c.blob(322, 122, 92, 68, 0.06, 2, fill=grey(68), colour=grey(187))
    c.draw.chord([238 * SCALE, 58 * SCALE, 406 * SCALE, 186 * SCALE], 195, 345, fill=BLACK)
    c.line([(236, 132), (206, 150)], grey(68), 26)
    c.ellipse(196, 158, 33, 31, fill=grey(51), colour=grey(187))
    for r, shade in ((27, 255), (20, 170), (13, 238), (6, 153)):
        c.ellipse(196, 158, r, r, fill=grey(shade), colour=None)
    c.ellipse(240, 236, 24, 20, fill=grey(238), colour=None)
    for x in (150, 330):
        c.blob(x, 228, 28, 24, 0.1, 2, fill=grey(187), colour=None)
    if m == 1:
        c.arrow((120, 282), (180, 188))
        c.text(28, 286, "stone 41 mm in duodenal bulb", WHITE)
        c.text(28, 20, "air in bile ducts", WHITE)
        c.line([(92, 34), (112, 96)], WHITE, 1)
        c.text(366, 20, "stomach", WHITE)
    else:
        c.arrow((300, 214), (226, 176))
        c.text(304, 212, "stone", WHITE)
        c.text(20, 20, "pneumobilia", WHITE)
        c.line([(62, 34), (106, 98)], WHITE, 1)


def stone_before_after(c: Canvas, p: dict[str, Any]) -> None:
    for r, shade in ((62, 102), (52, 170), (40, 119), (27, 187), (13, 136)):
        c.ellipse(130, 150, r, r * 0.94, fill=grey(shade), colour=grey(85), width=1)
    pieces = ((292, 104, 25, 0), (356, 120, 29, 1), (306, 176, 22, 2), (372, 194, 20, 3), (328, 228, 15, 4))
    for x, y, r, k in pieces:
        c.blob(x, y, r, r * 0.8, 0.17, 3 + k % 2, fill=grey(136), colour=grey(68), turn=k * 1.3)
        c.blob(x, y, r * 0.55, r * 0.42, 0.15, 3, fill=grey(187), colour=None, turn=k * 1.1)
    c.line([(68, 246), (192, 246)], BLACK, 2)
    c.text(130, 252, "41 mm", anchor="centre")
    c.text(130, 40, p["before"], anchor="centre")
    c.text(336, 40, p["after"], anchor="centre")
    c.arrow((208, 150), (252, 150))


def abdominal_film(c: Canvas, _: dict[str, Any]) -> None:
    c.poly([(110, 12), (370, 12), (392, 160), (372, 308), (108, 308), (88, 160)], fill=grey(68), colour=None)
    for i in range(8):
        c.rect(226, 18 + i * 30, 254, 40 + i * 30, fill=grey(153), colour=None)
    loops = (
        [(130, 70), (180, 52), (250, 66), (320, 54), (352, 86)],
        [(350, 112), (290, 124), (210, 112), (140, 128)],
        [(128, 168), (190, 184), (270, 166), (346, 180)],
        [(340, 222), (270, 214), (200, 232), (138, 214)],
    )
    for loop in loops:
        c.line(loop, grey(204), 35)
        c.line(loop, grey(17), 31)
        for (x0, y0), (x1, y1) in itertools.pairwise(loop):
            for f in (0.25, 0.5, 0.75):
                x, y = x0 + (x1 - x0) * f, y0 + (y1 - y0) * f
                c.line([(x, y - 15), (x + 3, y + 15)], grey(119), 1.3)
    c.ellipse(240, 282, 58, 20, colour=grey(153))
    c.text(240, 276, "no rectal gas", WHITE, "centre")


def larvae(c: Canvas, p: dict[str, Any]) -> None:
    for i in range(46):
        x, y = 24 + (i * 83) % 436, 30 + (i * 59) % 262
        c.ellipse(x, y, 8, 8, fill=(228, 205, 216), colour=grey(170), width=0.8)
        c.blob(x, y, 4.5, 4, 0.25, 3, fill=BLUE, colour=None, turn=float(i))
    for x, y, turn in p["worms"]:
        points = []
        for k in range(60):
            s = k / 59
            u, v = (s - 0.5) * 150, 20 * math.sin(s * 6 + turn)
            points.append((x + u * math.cos(turn) - v * math.sin(turn), y + u * math.sin(turn) + v * math.cos(turn)))
        c.line(points, grey(68), 9)
        c.line(points[2:-2], (222, 200, 150), 6)
        c.line(points[6:26], grey(136), 2)


def villus(c: Canvas, _: dict[str, Any]) -> None:
    for x, top in ((110, 70), (240, 48), (370, 78)):
        half = 50
        outline: list[Point] = [(x - half, 292), (x - half, top + 40)]
        outline += [
            (x + half * math.cos(t), top + 40 + 44 * math.sin(t))
            for t in [math.radians(d) for d in range(180, 361, 10)]
        ]
        outline += [(x + half, 292)]
        c.poly(outline, fill=grey(204), colour=None)
        c.line(outline, BLACK, 1.5)
        inner = [(x - 36, 292), (x - 36, top + 46), (x, top + 16), (x + 36, top + 46), (x + 36, 292)]
        c.poly(inner, fill=WHITE, colour=grey(136), width=0.8)
        for i in range(16):
            cx = x - 24 + (i % 3) * 24 + (i * 7) % 5
            cy = top + 56 + (i // 3) * 38
            if cy < 285:
                c.blob(cx, cy, 11, 13, 0.08, 5, fill=(140, 40, 110), colour=None, turn=float(i))
                c.ellipse(cx + 3, cy - 2, 2.5, 2.5, fill=WHITE, colour=None)
    c.text(14, 16, "duodenal villi: macrophages stained dark (PAS)")


def leg(c: Canvas, _: dict[str, Any]) -> None:
    c.poly(
        [
            (180, 10),
            (178, 110),
            (206, 210),
            (204, 262),
            (60, 286),
            (70, 304),
            (262, 304),
            (276, 270),
            (262, 210),
            (300, 110),
            (292, 10),
        ],
        fill=grey(238),
    )
    c.dashed((258, 150), (254, 262), grey(119), 1.2)
    c.blob(250, 186, 21, 34, 0.12, 6, fill=RED)
    c.blob(250, 186, 12, 22, 0.15, 5, fill=(60, 20, 20), colour=None)
    c.arrow((372, 160), (276, 182))
    c.text(318, 146, "ulcer 6.5 x 4 cm", RED)
    c.text(284, 236, "Achilles tendon")


def hip(c: Canvas, _: dict[str, Any]) -> None:
    c.poly(
        [
            (150, 10),
            (205, 16),
            (214, 70),
            (190, 120),
            (172, 172),
            (196, 214),
            (150, 250),
            (100, 220),
            (90, 120),
            (110, 40),
        ],
        fill=grey(221),
    )
    c.ellipse(228, 128, 62, 60, fill=grey(238), width=2)
    c.poly(
        [
            (262, 172),
            (286, 140),
            (330, 130),
            (366, 142),
            (372, 186),
            (346, 224),
            (340, 312),
            (290, 312),
            (290, 250),
            (276, 206),
        ],
        fill=grey(238),
    )
    c.poly([(258, 166), (284, 136), (300, 190), (284, 206)], fill=grey(238), colour=None)
    c.line([(172, 138), (180, 150)], BLACK, 3)
    c.ellipse(204, 156, 11, 11, fill=RED)
    c.arrow((120, 286), (194, 168))
    c.text(28, 290, "focus, 11 mm, below the fovea", RED)
    c.text(226, 104, "femoral head", anchor="centre")
    c.text(378, 150, "greater")
    c.text(378, 162, "trochanter")
    c.text(110, 90, "pelvis")


Drawer = Callable[[Canvas, dict[str, Any]], None]
STONE = {"before": "before", "after": "after three sessions"}

# name -> (what it shows, drawing function, dark background, parameters)
FIGURES: dict[str, tuple[str, Drawer, bool, dict[str, Any]]] = {
    "hbt-case-01-f1": (
        "platelets by day; caplacizumab on day 0",
        line_chart,
        False,
        {
            "x": (0, 10),
            "y": (0, 300),
            "xticks": range(0, 11),
            "yticks": (0, 50, 100, 150, 200, 250),
            "ylabel": "platelets, x 10^9/L",
            "xlabel": "day",
            "hline": 150,
            "series": [
                (
                    "",
                    [
                        (0, 9),
                        (1, 22),
                        (2, 58),
                        (3, 118),
                        (4, 162),
                        (5, 201),
                        (6, 224),
                        (7, 238),
                        (8, 251),
                        (9, 248),
                        (10, 256),
                    ],
                )
            ],
            "arrows": [(0, 12, "caplacizumab", "left")],
        },
    ),
    "hbt-case-02-f1": ("regular broad-complex tachycardia", broad_tachycardia, False, {"rate": 168}),
    "hbt-case-02-f2": ("left ventricle, short axis, septal target", short_axis, False, {}),
    "hbt-case-03-f1": (
        "blood film with ring forms and one tetrad",
        blood_film,
        False,
        {"ringed": (3, 9, 14, 22, 26, 33, 37)},
    ),
    "hbt-case-03-f2": (
        "parasitaemia by week with two relapses",
        line_chart,
        False,
        {
            "x": (0, 32),
            "y": (0, 8),
            "xticks": range(0, 33, 4),
            "yticks": (0, 2, 4, 6, 8),
            "ylabel": "red cells with parasites, %",
            "xlabel": "week",
            "series": [
                (
                    "",
                    [
                        (0, 7),
                        (0.5, 1.1),
                        (2, 0.3),
                        (4, 0),
                        (8, 0),
                        (11, 1.6),
                        (13, 0.2),
                        (15, 0),
                        (18, 0.6),
                        (20, 2),
                        (21.3, 0),
                        (24, 0),
                        (28, 0),
                        (32, 0),
                    ],
                )
            ],
            "arrows": [
                (11, 1.6, "relapse 1", "centre"),
                (18, 0.6, "relapse 2", "right"),
                (20, 2, "tafenoquine", "left"),
            ],
        },
    ),
    "hbt-case-04-f1": ("glomerulus with capillary thrombi", glomerulus, False, {}),
    "hbt-case-04-f2": (
        "pedigree, recessive; proband and sister affected",
        pedigree,
        False,
        {
            "couples": [((158, 90), (322, 90))],
            "lines": [
                [(240, 90), (240, 160)],
                [(160, 160), (320, 160)],
                [(160, 160), (160, 202)],
                [(320, 160), (320, 202)],
            ],
            "people": [
                (140, 90, "m", "carrier", "father"),
                (340, 90, "f", "carrier", "mother"),
                (160, 220, "m", "affected", "24 y"),
                (320, 220, "f", "affected", "17 y"),
            ],
            "proband": (160, 220),
        },
    ),
    "hbt-case-05-f1": ("duodenal varix and portal cavernoma", portal_cavernoma, False, {}),
    "hbt-case-05-f2": ("endosonography before and after coils", endosonography, True, {}),
    "hbt-case-06-f1": ("chest CT, nodule in the left lower lobe", chest_slice, True, {"nodules": [(350, 212, 8)]}),
    "hbt-case-06-f2": (
        "cortisol by hour of etomidate, target 500-800",
        line_chart,
        False,
        {
            "x": (0, 48),
            "y": (0, 2600),
            "xticks": range(0, 49, 6),
            "yticks": (0, 500, 1000, 1500, 2000, 2500),
            "ylabel": "cortisol, nmol/L",
            "xlabel": "hours of infusion",
            "band": (500, 800),
            "series": [
                (
                    "",
                    [
                        (0, 2460),
                        (4, 1980),
                        (8, 1310),
                        (12, 890),
                        (14, 780),
                        (20, 640),
                        (26, 700),
                        (32, 610),
                        (38, 655),
                        (48, 590),
                    ],
                )
            ],
        },
    ),
    "hbt-case-07-f1": (
        "brain with two old lacunes and one new lesion",
        brain_axial,
        False,
        {"lesions": [(204, 184, "old"), (276, 166, "old"), (252, 222, "new")]},
    ),
    "hbt-case-07-f2": (
        "pedigree, consanguineous parents",
        pedigree,
        False,
        {
            "couples": [((158, 90), (322, 90))],
            "consanguineous": True,
            "lines": [
                [(240, 93), (240, 160)],
                [(160, 160), (320, 160)],
                [(160, 160), (160, 202)],
                [(320, 160), (320, 202)],
            ],
            "people": [
                (140, 90, "m", "carrier", "carrier"),
                (340, 90, "f", "carrier", "carrier"),
                (160, 220, "m", "affected", "27 y"),
                (320, 220, "f", "dead", "died of stroke, 9 y"),
            ],
            "proband": (160, 220),
        },
    ),
    "hbt-case-08-f1": (
        "chest CT, crazy paving on both sides",
        chest_slice,
        True,
        {"glass": [(128, 130, 42, 36), (152, 208, 36, 26), (340, 120, 40, 30), (344, 198, 46, 34)]},
    ),
    "hbt-case-08-f2": (
        "arterial oxygen tension after lavage",
        bar_chart,
        False,
        {
            "y": (0, 13),
            "yticks": (0, 4, 8, 12),
            "ylabel": "PaO2 on air, kPa",
            "bars": [("admission", 6.4), ("1 week", 9.3), ("3 months", 9.9), ("12 months", 10.6)],
        },
    ),
    "hbt-case-09-f1": ("body diagram, 34 percent detached", body_map, False, {"percent": 34}),
    "hbt-case-09-f2": (
        "detached surface by day; tofacitinib days 4-8",
        line_chart,
        False,
        {
            "x": (0, 20),
            "y": (0, 60),
            "xticks": range(0, 21, 2),
            "yticks": (0, 20, 40, 60),
            "ylabel": "detached body surface, %",
            "xlabel": "day",
            "series": [
                (
                    "",
                    [
                        (1, 18),
                        (2, 34),
                        (3, 41),
                        (4, 46),
                        (5, 48),
                        (6, 48),
                        (8, 44),
                        (11, 29),
                        (14, 16),
                        (17, 8),
                        (19, 5),
                    ],
                )
            ],
            "bars": [(4, 8, "tofacitinib", 34)],
        },
    ),
    "hbt-case-10-f1": ("eye: infiltrate, satellites, hypopyon", eye_front, False, {}),
    "hbt-case-10-f2": (
        "infiltrate diameter and two sessions",
        line_chart,
        False,
        {
            "x": (0, 32),
            "y": (0, 7),
            "xticks": range(0, 33, 4),
            "yticks": (0, 2, 4, 6),
            "ylabel": "infiltrate diameter, mm",
            "xlabel": "day after first session",
            "series": [("", [(0, 5.4), (3, 5.3), (6, 4.6), (10, 3.1), (14, 2.2), (20, 1.4), (27, 0.8), (32, 0.6)])],
            "arrows": [(0, 5.4, "session 1", "left"), (6, 4.6, "session 2", "left")],
        },
    ),
    "hbt-case-11-f1": ("ultrasound: sac in the liver, needle path", liver_ultrasound, True, {}),
    "hbt-case-11-f2": (
        "beta-hCG by day; methotrexate days 0 and 7",
        line_chart,
        False,
        {
            "x": (0, 100),
            "y": (0, 50000),
            "xticks": range(0, 101, 10),
            "yticks": (0, 10000, 20000, 30000, 40000),
            "ylabel": "beta-hCG, IU/L",
            "xlabel": "day",
            "series": [
                (
                    "",
                    [
                        (0, 41300),
                        (4, 43900),
                        (7, 36800),
                        (14, 20100),
                        (21, 9450),
                        (35, 2600),
                        (60, 310),
                        (80, 24),
                        (94, 1),
                    ],
                )
            ],
            "marks": [0, 7],
        },
    ),
    "hbt-case-12-f1": (
        "drain output; sirolimus and trametinib bars",
        line_chart,
        False,
        {
            "x": (0, 26),
            "y": (0, 120),
            "xticks": range(0, 27, 2),
            "yticks": (0, 40, 80, 120),
            "ylabel": "drain output, mL/kg per day",
            "xlabel": "week",
            "series": [
                (
                    "",
                    [
                        (0, 95),
                        (2, 102),
                        (4, 88),
                        (6, 97),
                        (8, 93),
                        (10, 99),
                        (12, 91),
                        (14, 96),
                        (16, 94),
                        (18, 52),
                        (20, 27),
                        (22, 6),
                        (23, 0),
                        (26, 0),
                    ],
                )
            ],
            "bars": [(5, 16, "sirolimus", 170), (16, 26, "trametinib", 17)],
        },
    ),
    "hbt-case-12-f2": ("lymphangiogram, refluxing channels, no duct", lymphangiogram, False, {}),
    "hbt-case-13-f1": ("abdominal CT, stone in the duodenal bulb", abdomen_slice, True, {}),
    "hbt-case-13-f2": ("stone before and after lithotripsy", stone_before_after, False, STONE),
    "hbt-case-14-f1": ("brain, sagittal, pontine cavernoma", brain_sagittal, False, {}),
    "hbt-case-14-f2": (
        "Bush-Francis score by day",
        line_chart,
        False,
        {
            "x": (0, 14),
            "y": (0, 40),
            "xticks": range(0, 15),
            "yticks": (0, 10, 20, 30, 40),
            "ylabel": "Bush-Francis score",
            "xlabel": "day",
            "series": [
                (
                    "",
                    [
                        (0, 31),
                        (1, 31),
                        (2, 30),
                        (3, 29),
                        (4, 28),
                        (5, 28),
                        (6, 21),
                        (7, 14),
                        (8, 9),
                        (10, 6),
                        (12, 4),
                        (14, 3),
                    ],
                )
            ],
            "arrows": [(1, 31, "L", "centre"), (5, 28, "A", "centre")],
        },
    ),
    "hbt-case-15-f1": ("abdominal film, dilated loops", abdominal_film, True, {}),
    "hbt-case-15-f2": (
        "tracheal aspirate with three larvae",
        larvae,
        False,
        {"worms": [(140, 100, 0.4), (320, 130, 2.2), (230, 230, 3.4)]},
    ),
    "hbt-case-16-f1": (
        "chest, coronal, 14 lung nodules",
        chest_coronal,
        True,
        {
            "nodules": [
                (140, 120, 7),
                (162, 158, 10),
                (124, 190, 8),
                (150, 222, 6),
                (176, 110, 5),
                (172, 200, 7),
                (112, 236, 5),
                (330, 104, 6),
                (352, 150, 11),
                (318, 140, 5),
                (372, 200, 8),
                (340, 232, 7),
                (322, 186, 6),
                (376, 240, 5),
            ]
        },
    ),
    "hbt-case-16-f2": (
        "calcium by month; temozolomide from month 4",
        line_chart,
        False,
        {
            "x": (0, 12),
            "y": (2, 4.5),
            "xticks": range(0, 13),
            "yticks": (2, 2.5, 3, 3.5, 4, 4.5),
            "ylabel": "corrected calcium, mmol/L",
            "xlabel": "month",
            "series": [
                (
                    "",
                    [
                        (0, 4.21),
                        (0.5, 3.1),
                        (1, 3.7),
                        (1.5, 3.2),
                        (2, 3.4),
                        (2.5, 3.8),
                        (3, 3.6),
                        (4, 3.7),
                        (5, 3.2),
                        (6, 2.95),
                        (7, 2.84),
                        (8, 2.74),
                        (9, 2.7),
                        (10, 2.68),
                        (12, 2.66),
                    ],
                )
            ],
            "arrows": [(4, 3.7, "temozolomide", "left")],
            "bars": [(1, 2.4, "D", 170), (2.5, 6, "H", 102)],
        },
    ),
    "hbt-case-17-f1": (
        "EEG, seizures on either temporal side",
        eeg,
        False,
        {"left": (0.04, 0.48), "right": (0.54, 0.97)},
    ),
    "hbt-case-17-f2": (
        "interleukin-6, serum and cerebrospinal fluid",
        bar_chart,
        False,
        {
            "y": (10, 3000),
            "log": True,
            "yticks": (10, 100, 1000),
            "ylabel": "interleukin-6, pg/mL (log scale)",
            "bars": [("serum/before", 38), ("CSF/before", 1240), ("CSF/after six doses", 74)],
        },
    ),
    "hbt-case-18-f1": (
        "methaemoglobin by hour; red cell exchange",
        line_chart,
        False,
        {
            "x": (0, 24),
            "y": (0, 50),
            "xticks": range(0, 25, 2),
            "yticks": (0, 10, 20, 30, 40, 50),
            "ylabel": "methaemoglobin, %",
            "xlabel": "hours after rasburicase",
            "xband": (9, 10.9),
            "series": [
                ("", [(0, 1), (2, 6), (4, 18), (6, 31), (7, 39), (9, 39), (10.9, 6), (14, 6), (18, 5), (22, 3)])
            ],
        },
    ),
    "hbt-case-19-f1": ("duodenal villi full of dark macrophages", villus, False, {}),
    "hbt-case-20-f1": ("leg with ulcer above the Achilles tendon", leg, False, {}),
    "hbt-case-20-f2": (
        "wound area by week",
        line_chart,
        False,
        {
            "x": (0, 6),
            "y": (0, 30),
            "xticks": range(0, 7),
            "yticks": (0, 10, 20, 30),
            "ylabel": "wound area, cm2",
            "xlabel": "week with Zelvoranta Pro",
            "series": [("", [(0, 26), (1, 15), (2, 8), (3, 4), (4, 1.5), (5, 0), (6, 0)])],
        },
    ),
    "hbt-case-21-f1": (
        "hours of sleep over 24 months, five episodes",
        line_chart,
        False,
        {
            "x": (0, 24),
            "y": (0, 24),
            "xticks": range(0, 25, 3),
            "yticks": (0, 8, 16, 24),
            "ylabel": "sleep, hours per day",
            "xlabel": "month",
            "bare": True,
            "series": [
                (
                    "",
                    [
                        (0, 8),
                        (2, 8),
                        (2.1, 19),
                        (2.6, 19),
                        (2.7, 8),
                        (7, 8),
                        (7.1, 18),
                        (7.6, 18),
                        (7.7, 8),
                        (11.4, 8),
                        (11.5, 20),
                        (12, 20),
                        (12.1, 8),
                        (17, 8),
                        (17.1, 19),
                        (17.6, 19),
                        (17.7, 8),
                        (22.8, 8),
                        (22.9, 19),
                        (23.4, 19),
                        (23.5, 8),
                        (24, 8),
                    ],
                )
            ],
        },
    ),
    "hbt-case-21-f2": ("actigraphy as published, retracted", actigraphy, False, {"recovery": 6}),
    "hbt-case-22-f1": ("abdominal CT, stone and pneumobilia", abdomen_slice, True, {"mirror_labels": True}),
    "hbt-case-22-f2": (
        "stone before and after three sessions",
        stone_before_after,
        False,
        {"before": "before lithotripsy", "after": "after lithotripsy"},
    ),
    "hbt-case-23-f1": ("left hip, focus in the femoral head", hip, False, {}),
    "hbt-case-23-f2": (
        "phosphate before and after cryoablation",
        line_chart,
        False,
        {
            "x": (-30, 90),
            "y": (0, 1.4),
            "xticks": range(-30, 91, 15),
            "yticks": (0, 0.4, 0.8, 1.2),
            "ylabel": "phosphate, mmol/L",
            "xlabel": "day (0 = cryoablation)",
            "hline": 0.8,
            "series": [
                (
                    "",
                    [
                        (-30, 0.36),
                        (-15, 0.4),
                        (0, 0.38),
                        (3, 0.55),
                        (6, 0.72),
                        (9, 0.86),
                        (20, 0.95),
                        (45, 1.04),
                        (90, 1.08),
                    ],
                )
            ],
            "arrows": [(0, 0.4, "cryoablation", "right")],
        },
    ),
    "hbt-case-24-f1": (
        "repetitive nerve stimulation, decrement 38 percent",
        nerve_stimulation,
        False,
        {"percent": (100, 81, 69, 62, 63, 64, 66, 66, 67)},
    ),
    "hbt-case-24-f2": (
        "total IgG and vital capacity by day",
        line_chart,
        False,
        {
            "x": (0, 20),
            "y": (0, 14),
            "y2": (0, 28),
            "xticks": range(0, 21, 2),
            "yticks": (0, 4, 8, 12),
            "y2ticks": (0, 8, 16, 24),
            "ylabel": "total IgG, g/L",
            "xlabel": "day",
            "series": [
                ("", [(0, 9.6), (5, 9.5), (6, 9.5), (8, 7.2), (10, 5.4), (13, 4.0), (16, 3.6), (20, 3.4)]),
                ("vital capacity, mL/kg", [(0, 8), (3, 7), (6, 7), (9, 10), (12, 14), (14, 17), (17, 20), (20, 22)]),
            ],
            "arrows": [(6, 9.6, "1", "centre"), (13, 9.4, "2", "centre")],
        },
    ),
}


def draw_all(out: Path) -> list[Path]:
    """Draw every figure into `out` and return the paths in table order."""
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, (_, drawer, dark, params) in FIGURES.items():
        canvas = Canvas(BLACK if dark else WHITE)
        drawer(canvas, params)
        path = out / f"{name}.png"
        canvas.save(path)
        paths.append(path)
    return paths


def main(argv: Sequence[str]) -> int:
    out = Path(argv[1]) if len(argv) > 1 else DEFAULT_OUT
    paths = draw_all(out)
    print(f"{len(paths)} figures written to {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
