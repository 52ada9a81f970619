//! The colours of the themes, read off `assets/themes/`; and the nearest of a terminal's sixteen.

use std::{collections::BTreeMap, sync::LazyLock};

use ratatui::style::Color;
use serde::Deserialize;

use super::theme::Role;
use crate::app::look::ThemeName;

/// Red, green and blue, 0 to 255 each.
pub type Rgb = (u8, u8, u8);

/// A theme as its file tells it. Colours are `#rrggbb`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    background: String,
    foreground: String,
    #[serde(default)]
    runs: Vec<String>,
    #[serde(default)]
    heat: Vec<String>,
    #[serde(default)]
    colours: BTreeMap<String, String>,
}

/// One colour, and what a terminal of sixteen has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ink {
    pub exact: Rgb,
    pub sixteen: Color,
}

/// The colours of a theme.
#[derive(Debug, Clone, Default)]
pub struct Palette {
    /// Of pictures; a terminal's own background stays as it is.
    pub background: Rgb,
    /// Of pictures; text without a colour of its own has the terminal's.
    pub foreground: Rgb,
    roles: [Option<Ink>; NAMES.len()],
    runs: Vec<Ink>,
    heat: Vec<Ink>,
}

/// The names of the roles in a file, in the order of [`slot`].
const NAMES: [&str; 18] = [
    "dim",
    "border",
    "title",
    "focused",
    "good",
    "warning",
    "bad",
    "raw",
    "smooth",
    "validation",
    "rate",
    "future",
    "parameters",
    "gradients",
    "accumulation",
    "optimizer",
    "activations",
    "key",
];

const fn slot(role: Role) -> Option<usize> {
    Some(match role {
        Role::Dim => 0,
        Role::Border => 1,
        Role::Title => 2,
        Role::Focused => 3,
        Role::Good => 4,
        Role::Warning => 5,
        Role::Bad => 6,
        Role::Raw => 7,
        Role::Smooth => 8,
        Role::Validation => 9,
        Role::Rate => 10,
        Role::Future => 11,
        Role::Parameters => 12,
        Role::Gradients => 13,
        Role::Accumulation => 14,
        Role::Optimizer => 15,
        Role::Activations => 16,
        Role::Key => 17,
        Role::Text | Role::Strong | Role::Selected | Role::Run(_) | Role::Heat(_) => return None,
    })
}

impl Palette {
    /// The colour of a role; nothing for text, and in a theme without colours.
    pub fn ink(&self, role: Role) -> Option<Ink> {
        match role {
            Role::Run(at) => self.runs.get(at % self.runs.len().max(1)).copied(),
            Role::Heat(step) => self.heat.get(usize::from(step).min(self.heat.len().max(1) - 1)).copied(),
            _ => self.roles[slot(role)?],
        }
    }

    fn read(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let (background, foreground) = (rgb(&file.background)?, rgb(&file.foreground)?);
        let ink = |text: &String| {
            let exact = rgb(text)?;
            Ok::<_, String>(Ink { exact, sixteen: nearest(exact, background) })
        };
        let mut roles = [None; NAMES.len()];
        for (name, text) in &file.colours {
            let slot =
                NAMES.iter().position(|known| known == name).ok_or_else(|| format!("no role `{name}`"))?;
            roles[slot] = Some(ink(text)?);
        }
        let all = |list: &[String]| list.iter().map(ink).collect::<Result<Vec<_>, _>>();
        Ok(Self { background, foreground, roles, runs: all(&file.runs)?, heat: all(&file.heat)? })
    }
}

const fn source(name: ThemeName) -> &'static str {
    match name {
        ThemeName::Dark => include_str!("../../assets/themes/dark.toml"),
        ThemeName::Light => include_str!("../../assets/themes/light.toml"),
        ThemeName::HighContrast => include_str!("../../assets/themes/high-contrast.toml"),
        ThemeName::ColourBlind => include_str!("../../assets/themes/colour-blind.toml"),
        ThemeName::Monochrome => include_str!("../../assets/themes/monochrome.toml"),
    }
}

/// The colours of a theme.
pub fn palette(name: ThemeName) -> &'static Palette {
    // A file that could not be read would leave a theme without colours; a test reads them all.
    static ALL: LazyLock<[Palette; 5]> =
        LazyLock::new(|| ThemeName::ALL.map(|name| Palette::read(source(name)).unwrap_or_default()));
    &ALL[name as usize]
}

fn rgb(text: &str) -> Result<Rgb, String> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.is_ascii());
    let value = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let value = value.ok_or_else(|| format!("`{text}` is no colour such as #46afe1"))?;
    let [_, red, green, blue] = value.to_be_bytes();
    Ok((red, green, blue))
}

/// The sixteen as most terminals show them.
const SIXTEEN: [(Color, Rgb); 16] = [
    (Color::Black, (0, 0, 0)),
    (Color::Red, (205, 0, 0)),
    (Color::Green, (0, 205, 0)),
    (Color::Yellow, (205, 205, 0)),
    (Color::Blue, (0, 0, 238)),
    (Color::Magenta, (205, 0, 205)),
    (Color::Cyan, (0, 205, 205)),
    (Color::Gray, (229, 229, 229)),
    (Color::DarkGray, (127, 127, 127)),
    (Color::LightRed, (255, 0, 0)),
    (Color::LightGreen, (0, 255, 0)),
    (Color::LightYellow, (255, 255, 0)),
    (Color::LightBlue, (92, 92, 255)),
    (Color::LightMagenta, (255, 0, 255)),
    (Color::LightCyan, (0, 255, 255)),
    (Color::White, (255, 255, 255)),
];
/// Least contrast of a colour of the sixteen with the background, so that it can be seen at all.
const VISIBLE: f64 = 1.95;

/// Least chroma of a colour that has a hue.
const HUE: f64 = 0.055;

/// The nearest of the sixteen that can be seen on the background. What has a hue keeps one, and hue counts most: what is
/// red stays red however pale it is.
fn nearest(colour: Rgb, background: Rgb) -> Color {
    let (l, a, b) = oklab(colour);
    let chroma = a.hypot(b);
    let away = |other: Rgb| {
        let (ol, oa, ob) = oklab(other);
        let other = oa.hypot(ob);
        let turned = chroma * other - (a * oa + b * ob);
        (l - ol).powi(2) + 0.25 * (chroma - other).powi(2) + 4.0 * turned
    };
    let has_hue = |rgb: Rgb| {
        let (_, a, b) = oklab(rgb);
        a.hypot(b) >= HUE
    };
    let seen = SIXTEEN.iter().filter(|(_, rgb)| contrast(*rgb, background) >= VISIBLE);
    let alike = seen.filter(|(_, rgb)| has_hue(*rgb) == (chroma >= HUE));
    alike.min_by(|(_, x), (_, y)| away(*x).total_cmp(&away(*y))).map_or(Color::Reset, |(colour, _)| *colour)
}

/// Light of each channel, 0 to 1.
fn linear((r, g, b): Rgb) -> [f64; 3] {
    [r, g, b].map(|channel| {
        let value = f64::from(channel) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

/// Lightness and two axes of colour as people see them (Ottosson's Oklab).
fn oklab(colour: Rgb) -> (f64, f64, f64) {
    lab_of(linear(colour))
}

fn lab_of([r, g, b]: [f64; 3]) -> (f64, f64, f64) {
    let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
    let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
    let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
    (
        0.210_454_255_3 * l + 0.793_617_785 * m - 0.004_072_046_8 * s,
        1.977_998_495_1 * l - 2.428_592_205 * m + 0.450_593_709_9 * s,
        0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766 * s,
    )
}

/// How much brighter one is than the other, 1 to 21, as WCAG 2 defines it.
fn contrast(a: Rgb, b: Rgb) -> f64 {
    let light = |colour| {
        let [r, g, b] = linear(colour);
        0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
    };
    let (a, b) = (light(a), light(b));
    a.max(b) / a.min(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coloured() -> impl Iterator<Item = (ThemeName, &'static Palette)> {
        let all = ThemeName::ALL.into_iter().filter(|name| *name != ThemeName::Monochrome);
        all.map(|name| (name, palette(name)))
    }

    #[test]
    fn every_file_is_read_and_complete() {
        for name in ThemeName::ALL {
            if let Err(why) = Palette::read(source(name)) {
                panic!("{}: {why}", name.as_str());
            }
        }
        for (name, palette) in coloured() {
            let missing: Vec<_> = NAMES.iter().zip(palette.roles).filter(|(_, ink)| ink.is_none()).collect();
            assert!(missing.is_empty(), "{}: {missing:?}", name.as_str());
            assert!(palette.runs.len() == 6 && palette.heat.len() == 9, "{}", name.as_str());
        }
        assert!(Palette::read("background = \"#000000\"\nforeground = \"white\"").is_err());
        assert!(Palette::read(&source(ThemeName::Dark).replace("dim =", "dimm =")).is_err());
    }

    #[test]
    fn everything_can_be_seen_on_its_background() {
        for (name, palette) in coloured() {
            let high = name == ThemeName::HighContrast;
            assert!(contrast(palette.foreground, palette.background) >= 7.0);
            for (role, ink) in NAMES.iter().zip(palette.roles) {
                let least = match *role {
                    _ if high => 7.0,
                    "border" | "raw" | "future" => 2.0,
                    _ => 3.9,
                };
                let found = contrast(ink.unwrap().exact, palette.background);
                assert!(found >= least, "{}: {role} has {found:.2}", name.as_str());
            }
            for ink in &palette.runs {
                assert!(contrast(ink.exact, palette.background) >= 3.0, "{}: {ink:?}", name.as_str());
            }
        }
    }

    #[test]
    fn a_heat_map_goes_one_way_in_greys() {
        for (name, palette) in coloured() {
            let lightness: Vec<f64> = palette.heat.iter().map(|ink| oklab(ink.exact).0).collect();
            let up = lightness.windows(2).all(|pair| pair[0] < pair[1]);
            let down = lightness.windows(2).all(|pair| pair[0] > pair[1]);
            assert!(up || down, "{}: {lightness:.2?}", name.as_str());
            // Much stands out from the background most.
            let last = palette.heat[8].exact;
            assert!(contrast(last, palette.background) > contrast(palette.heat[0].exact, palette.background));
        }
    }

    /// What is left of a colour without one kind of cone (Machado, Oliveira and Fernandes 2009, severity 1).
    fn seen(colour: Rgb, matrix: [[f64; 3]; 3]) -> (f64, f64, f64) {
        let channels = linear(colour);
        let row = |row: [f64; 3]| {
            row.iter().zip(channels).map(|(share, channel)| share * channel).sum::<f64>().clamp(0.0, 1.0)
        };
        lab_of(matrix.map(row))
    }

    #[test]
    fn the_runs_of_the_colour_blind_theme_stay_apart_whatever_cone_is_missing() {
        let kinds = [
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ],
            [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ],
        ];
        let apart = |name| {
            let runs = &palette(name).runs;
            let mut least = f64::INFINITY;
            for matrix in kinds {
                for (at, one) in runs.iter().enumerate() {
                    for other in &runs[at + 1..] {
                        let (a, b) = (seen(one.exact, matrix), seen(other.exact, matrix));
                        let distance = (a.0 - b.0).powi(2) + (a.1 - b.1).powi(2) + (a.2 - b.2).powi(2);
                        least = least.min(distance.sqrt());
                    }
                }
            }
            least
        };
        let (safe, plain) = (apart(ThemeName::ColourBlind), apart(ThemeName::Dark));
        assert!(safe > 0.08 && safe > 1.5 * plain, "{safe:.3} against {plain:.3}");
    }

    #[test]
    fn sixteen_colours_keep_the_hue() {
        let dark = palette(ThemeName::Dark);
        let of = |role| dark.ink(role).unwrap().sixteen;
        assert!(matches!(of(Role::Bad), Color::Red | Color::LightRed), "{:?}", of(Role::Bad));
        assert!(matches!(of(Role::Good), Color::Green | Color::LightGreen), "{:?}", of(Role::Good));
        assert!(matches!(of(Role::Warning), Color::Yellow | Color::LightYellow), "{:?}", of(Role::Warning));
        assert_eq!(of(Role::Dim), Color::DarkGray);
        for (name, palette) in coloured() {
            let all = palette.roles.iter().flatten().chain(&palette.runs);
            for ink in all {
                let seen = SIXTEEN.iter().find(|(colour, _)| *colour == ink.sixteen).unwrap().1;
                assert!(contrast(seen, palette.background) >= VISIBLE, "{}: {ink:?}", name.as_str());
            }
        }
    }
}
