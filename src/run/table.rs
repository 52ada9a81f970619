//! Tables of text: aligned for a terminal, or as Markdown.

use unicode_width::UnicodeWidthStr;

use super::{export::escape::markup, text::plain};

/// Where a column's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Rows under a heading.
#[derive(Debug, Clone)]
pub struct Table {
    heading: Vec<String>,
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table. A column whose title starts with `>` is aligned to the right.
    pub fn new(columns: &[&str]) -> Self {
        let align = |title: &&str| if title.starts_with('>') { Align::Right } else { Align::Left };
        Self {
            heading: columns.iter().map(|title| title.trim_start_matches('>').to_owned()).collect(),
            align: columns.iter().map(align).collect(),
            rows: Vec::new(),
        }
    }

    /// Appends a row; missing cells are empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = cells.into_iter().map(|cell| plain(&cell.into())).collect();
        row.resize(self.heading.len(), String::new());
        self.rows.push(row);
    }

    /// Whether there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Columns in line, two spaces apart, one line a row.
    pub fn aligned(&self) -> String {
        let widths = self.widths(|cell| cell.width());
        let mut text = String::new();
        for row in std::iter::once(&self.heading).chain(&self.rows) {
            let cells: Vec<String> = self.pad(row, &widths, |cell| cell.to_owned());
            text += cells.join("  ").trim_end();
            text.push('\n');
        }
        text
    }

    /// A Markdown table that is tidy as plain text, too.
    pub fn markdown(&self) -> String {
        let escape = |cell: &str| cell.replace('\\', "\\\\").replace('|', "\\|");
        let widths: Vec<usize> = self.widths(|cell| escape(cell).width().max(3));
        let mut text = String::new();
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        text += &line(self.pad(&self.heading, &widths, escape));
        let rule = widths.iter().zip(&self.align).map(|(&width, align)| match align {
            Align::Left => "-".repeat(width),
            Align::Right => "-".repeat(width - 1) + ":",
        });
        text += &line(rule.collect());
        for row in &self.rows {
            text += &line(self.pad(row, &widths, escape));
        }
        text
    }

    /// A table for a browser; what its cells say stays text.
    pub fn html(&self) -> String {
        let row = |tag: &str, cells: &[String]| -> String {
            let cells = cells.iter().zip(&self.align).map(|(cell, align)| {
                let class = if *align == Align::Right { " class=\"right\"" } else { "" };
                format!("<{tag}{class}>{}</{tag}>", markup(cell))
            });
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        // A table of names and values needs no heading.
        let named = self.heading.iter().any(|title| !title.is_empty());
        let heading = if named { row("th", &self.heading) } else { String::new() };
        let rows: String = self.rows.iter().map(|cells| row("td", cells)).collect();
        format!("<table>\n{heading}{rows}</table>\n")
    }

    fn widths(&self, width: impl Fn(&str) -> usize) -> Vec<usize> {
        let rows = std::iter::once(&self.heading).chain(&self.rows);
        rows.fold(vec![0; self.heading.len()], |widest, row| {
            widest.iter().zip(row).map(|(&most, cell)| most.max(width(cell))).collect()
        })
    }

    fn pad(&self, row: &[String], widths: &[usize], write: impl Fn(&str) -> String) -> Vec<String> {
        row.iter()
            .zip(widths)
            .zip(&self.align)
            .map(|((cell, &width), align)| {
                let cell = write(cell);
                let space = " ".repeat(width.saturating_sub(cell.width()));
                match align {
                    Align::Left => cell + &space,
                    Align::Right => space + &cell,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["name", ">loss"]);
        table.row(["日本", "2.5"]);
        table.row(["a|b", "10.25"]);
        table
    }

    #[test]
    fn columns_line_up_by_the_width_on_screen() {
        assert_eq!(table().aligned(), "name   loss\n日本    2.5\na|b   10.25\n");
    }

    #[test]
    fn markdown_keeps_bars_inside_their_cell() {
        assert_eq!(
            table().markdown(),
            "| name |  loss |\n| ---- | ----: |\n| 日本 |   2.5 |\n| a\\|b | 10.25 |\n"
        );
    }
}
