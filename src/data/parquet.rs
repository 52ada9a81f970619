//! Tables of Apache Parquet: the columns that are asked for, some rows at a time.
//!
//! Only the pages that hold those rows are in memory, whatever the size of the file and of its row groups.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use ::parquet::{
    basic::{ConvertedType, LogicalType, Type as Physical},
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::{ByteArray, DataType},
    errors::ParquetError,
    file::reader::{FileReader, RowGroupReader, SerializedFileReader},
    schema::types::Type,
};

use super::{DataError, corpus::unreadable, error::RowFault, text::unpack::Meter, unborne::held};

/// Rows that are decoded at once: a row may be a whole book.
const AT_ONCE: usize = 64;

/// What such a file begins and ends with.
const MARK: &[u8; 4] = b"PAR1";

/// Takes a row: its number, counted from 1, and its values.
pub(super) type Each<'a> = dyn FnMut(usize, &[Value]) -> Result<(), DataError> + 'a;

/// A table whose columns are known.
pub(super) struct Table {
    reader: SerializedFileReader<File>,
    path: String,
    /// Of the file.
    bytes: u64,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Text,
    Integers {
        signed: bool,
    },
    Truth,
    /// Something else, in words.
    Other(&'static str),
}

impl Holds {
    /// What it is instead of text, in words.
    pub(super) const fn unless_text(self) -> Option<&'static str> {
        match self {
            Self::Text => None,
            Self::Integers { .. } => Some("integers"),
            Self::Truth => Some("truth values"),
            Self::Other(kind) => Some(kind),
        }
    }
}

/// One value.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Null,
    Bytes(ByteArray),
    Integer(i128),
    Truth(bool),
}

impl Value {
    /// The text of a column that holds text; nothing where the row has none.
    ///
    /// # Errors
    /// It is no UTF-8, or holds a NUL character.
    pub(super) fn text(&self, column: &str) -> Result<Option<&str>, RowFault> {
        let Self::Bytes(bytes) = self else { return Ok(None) };
        let column = || column.to_owned();
        match std::str::from_utf8(bytes.data()) {
            Ok(text) if text.contains('\0') => Err(RowFault::Nul { column: column() }),
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(RowFault::NotUtf8 { column: column(), offset: error.valid_up_to() }),
        }
    }

    /// What it says as a label; empty where the row has none.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub(super) fn label(&self, column: &str) -> Result<String, RowFault> {
        match self {
            Self::Integer(number) => Ok(number.to_string()),
            Self::Truth(truth) => Ok(truth.to_string()),
            Self::Null | Self::Bytes(_) => Ok(self.text(column)?.unwrap_or_default().to_owned()),
        }
    }
}

impl Table {
    /// Opens a file and reads which columns it has.
    ///
    /// # Errors
    /// The file cannot be read, breaks off, is damaged, or is no Parquet.
    pub(super) fn open(path: &Path) -> Result<Self, DataError> {
        let name = path.display().to_string();
        let read = || -> io::Result<(File, u64, [[u8; 4]; 2])> {
            let mut file = File::open(path)?;
            let bytes = file.metadata()?.len();
            let mut marks = [[0; 4]; 2];
            if bytes >= 4 {
                file.read_exact(&mut marks[0])?;
            }
            if bytes >= 12 {
                file.seek(SeekFrom::End(-4))?;
                file.read_exact(&mut marks[1])?;
            }
            Ok((file, bytes, marks))
        };
        let (file, bytes, [first, last]) = read().map_err(|error| unreadable(&name, &error))?;
        let damaged =
            |problem: &str| DataError::DamagedTable { path: name.clone(), problem: problem.to_owned() };
        match (&first, &last) {
            _ if bytes == 0 => return Err(DataError::Empty { path: name }),
            (MARK, MARK) => {}
            (b"PARE", _) | (_, b"PARE") => return Err(damaged("its columns are encrypted")),
            (MARK, _) => {
                return Err(DataError::TableEndsEarly { path: name, bytes });
            }
            _ => return Err(damaged("it does not begin with the mark of one")),
        }
        let reader = guarded(&name, || SerializedFileReader::new(file))?;
        Ok(Self { reader, path: name, bytes })
    }

    /// The names of all columns; one that holds lists or objects has one name.
    pub(super) fn header(&self) -> Vec<String> {
        self.fields().map(|field| field.name().to_owned()).collect()
    }

    /// What the columns hold, in the same order.
    pub(super) fn holds(&self) -> Vec<Holds> {
        self.fields().map(holds).collect()
    }

    fn fields(&self) -> impl Iterator<Item = &Type> {
        self.reader.metadata().file_metadata().schema().get_fields().iter().map(|field| &**field)
    }

    /// Hands out all rows, counted from 1, with the values of these columns in this order; none of them may hold
    /// anything else than text, integers or truth values. Tells the meter how far it is.
    ///
    /// # Errors
    /// The file is damaged, or what `each` says.
    pub(super) fn rows(
        &self,
        columns: &[usize],
        meter: &Meter,
        each: &mut Each<'_>,
    ) -> Result<(), DataError> {
        let metadata = self.reader.metadata();
        let descriptor = metadata.file_metadata().schema_descr();
        let leaves: Vec<usize> = columns
            .iter()
            .filter_map(|column| {
                (0..descriptor.num_columns()).find(|leaf| descriptor.get_column_root_idx(*leaf) == *column)
            })
            .collect();
        let signed: Vec<bool> =
            self.holds().into_iter().map(|holds| holds != Holds::Integers { signed: false }).collect();
        let all = metadata.row_groups().iter().map(|group| group.num_rows().max(0)).sum::<i64>().max(1);
        let (mut number, mut cells) = (0, Vec::with_capacity(columns.len()));
        for group in 0..metadata.num_row_groups() {
            let wanted = usize::try_from(metadata.row_group(group).num_rows()).unwrap_or(0);
            let mut readers = guarded(&self.path, || {
                let group = self.reader.get_row_group(group)?;
                let column = |(leaf, column): (&usize, &usize)| {
                    let nullable = descriptor.column(*leaf).max_def_level() > 0;
                    Column::open(&*group, *leaf, nullable, signed[*column])
                };
                leaves.iter().zip(columns).map(column).collect::<Result<Vec<Column>, ParquetError>>()
            })?;
            let mut left = wanted;
            while left > 0 {
                let mut some = guarded(&self.path, || {
                    readers.iter_mut().map(|column| column.next(left)).collect::<Result<Vec<_>, _>>()
                })?;
                let rows = some.iter().map(ExactSizeIterator::len).min().unwrap_or(0);
                if rows == 0 || some.iter().any(|cells| cells.len() != rows) {
                    return Err(DataError::DamagedTable {
                        path: self.path.clone(),
                        problem: format!("a column has fewer rows than its {wanted}, in row group {group}"),
                    });
                }
                for _ in 0..rows {
                    number += 1;
                    cells.clear();
                    cells.extend(some.iter_mut().filter_map(Iterator::next));
                    each(number, &cells)?;
                }
                left -= rows;
                meter.reached((u128::from(self.bytes) * number as u128 / all as u128) as u64);
            }
        }
        meter.reached(self.bytes);
        Ok(())
    }
}

/// What a field of the schema holds.
fn holds(field: &Type) -> Holds {
    let info = field.get_basic_info();
    if field.is_group() {
        return Holds::Other(match info.converted_type() {
            ConvertedType::LIST => "lists",
            ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE => "maps",
            _ if matches!(info.logical_type_ref(), Some(LogicalType::List)) => "lists",
            _ => "objects",
        });
    }
    if info.has_repetition() && info.repetition() == ::parquet::basic::Repetition::REPEATED {
        return Holds::Other("lists");
    }
    let (physical, logical) = (field.get_physical_type(), info.logical_type_ref());
    match (physical, logical, info.converted_type()) {
        (Physical::BOOLEAN, ..) => Holds::Truth,
        (Physical::FLOAT | Physical::DOUBLE, ..) => Holds::Other("fractions"),
        (_, Some(LogicalType::Decimal(_)), _) | (_, _, ConvertedType::DECIMAL) => {
            Holds::Other("decimal numbers")
        }
        (_, Some(LogicalType::Unknown), _) => Holds::Other("nothing"),
        // Some writers do not say that their bytes are text.
        (
            Physical::BYTE_ARRAY,
            None | Some(LogicalType::String | LogicalType::Enum | LogicalType::Json),
            ConvertedType::NONE | ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON,
        ) => Holds::Text,
        (Physical::INT32 | Physical::INT64, None, ConvertedType::NONE) => Holds::Integers { signed: true },
        (Physical::INT32 | Physical::INT64, Some(LogicalType::Integer(kind)), _) => {
            Holds::Integers { signed: kind.is_signed }
        }
        (
            Physical::INT32 | Physical::INT64,
            None,
            ConvertedType::INT_8 | ConvertedType::INT_16 | ConvertedType::INT_32 | ConvertedType::INT_64,
        ) => Holds::Integers { signed: true },
        (
            Physical::INT32 | Physical::INT64,
            None,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64,
        ) => Holds::Integers { signed: false },
        (Physical::INT32 | Physical::INT64 | Physical::INT96, ..) => Holds::Other("dates or times"),
        (Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY, ..) => Holds::Other("bytes"),
    }
}

/// One column of a row group.
struct Column {
    reader: ColumnReader,
    nullable: bool,
    signed: bool,
}

impl Column {
    fn open(
        group: &dyn RowGroupReader,
        leaf: usize,
        nullable: bool,
        signed: bool,
    ) -> Result<Self, ParquetError> {
        Ok(Self { reader: group.get_column_reader(leaf)?, nullable, signed })
    }

    /// The next values, at most so many.
    fn next(&mut self, left: usize) -> Result<std::vec::IntoIter<Value>, ParquetError> {
        let (rows, nullable, signed) = (left.min(AT_ONCE), self.nullable, self.signed);
        let small = |value: i32| if signed { i128::from(value) } else { i128::from(value as u32) };
        let large = |value: i64| if signed { i128::from(value) } else { i128::from(value as u64) };
        match &mut self.reader {
            ColumnReader::ByteArrayColumnReader(reader) => values(reader, rows, nullable, Value::Bytes),
            ColumnReader::BoolColumnReader(reader) => values(reader, rows, nullable, Value::Truth),
            ColumnReader::Int32ColumnReader(reader) => {
                values(reader, rows, nullable, |value| Value::Integer(small(value)))
            }
            ColumnReader::Int64ColumnReader(reader) => {
                values(reader, rows, nullable, |value| Value::Integer(large(value)))
            }
            _ => Err(ParquetError::General("a column of another kind than its schema says".to_owned())),
        }
    }
}

/// The next values of a column, with nothing where a row has none.
fn values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    nullable: bool,
    cell: impl Fn(T::T) -> Value,
) -> Result<std::vec::IntoIter<Value>, ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    reader.read_records(rows, nullable.then_some(&mut levels), None, &mut values)?;
    let mut values = values.into_iter().map(cell);
    let cells: Vec<Value> = if nullable {
        let one = |level: &i16| if *level > 0 { values.next().unwrap_or(Value::Null) } else { Value::Null };
        levels.iter().map(one).collect()
    } else {
        values.collect()
    };
    Ok(cells.into_iter())
}

/// What the reader says; it may panic over a file that is damaged.
fn guarded<T>(path: &str, read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, DataError> {
    held(read).map_err(|problem| {
        let problem = problem.split_whitespace().collect::<Vec<_>>().join(" ");
        DataError::DamagedTable { path: path.to_owned(), problem }
    })
}

#[cfg(test)]
pub(in crate::data) mod tests;
