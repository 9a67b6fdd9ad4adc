//! Histograms by two keys that are known beforehand, such as a route and a status.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::MetricType,
};

use super::{Buckets, Histogram};

/// Labels with their values.
pub type Labels = Vec<(&'static str, String)>;

/// A table of histograms, each created by its first value. Clones share them.
#[derive(Clone, Debug)]
pub struct HistogramTable(Arc<Table>);

#[derive(Debug)]
struct Table {
    rows: Vec<Row>,
    column_label: &'static str,
    columns: &'static [&'static str],
    buckets: Buckets,
}

#[derive(Debug)]
struct Row {
    labels: Labels,
    cells: Box<[OnceLock<Histogram>]>,
}

impl HistogramTable {
    /// Rows by their labels, columns by the values of one label.
    pub fn new(
        rows: Vec<Labels>,
        (column_label, columns): (&'static str, &'static [&'static str]),
        buckets: Buckets,
    ) -> Self {
        let rows = rows.into_iter().map(|labels| Row {
            labels,
            cells: columns.iter().map(|_| OnceLock::new()).collect(),
        });
        Self(Arc::new(Table {
            rows: rows.collect(),
            column_label,
            columns,
            buckets,
        }))
    }

    /// Records a duration. Ignores a row or a column that does not exist.
    pub fn observe(&self, row: usize, column: usize, duration: Duration) {
        let row = self.0.rows.get(row);
        if let Some(cell) = row.and_then(|row| row.cells.get(column)) {
            cell.get_or_init(|| Histogram::new(self.0.buckets))
                .observe_duration(duration);
        }
    }

    fn encode_rows(&self, encoder: &mut MetricEncoder) -> fmt::Result {
        for row in &self.0.rows {
            for (cell, column) in row.cells.iter().zip(self.0.columns) {
                let Some(histogram) = cell.get() else {
                    continue;
                };
                let labels = row.labels.iter();
                let labels = labels.map(|(label, value)| (*label, value.as_str()));
                let labels: Vec<_> = labels.chain([(self.0.column_label, *column)]).collect();
                histogram.encode(encoder.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Several tables with different rows, as one metric.
#[derive(Clone, Debug)]
pub struct HistogramTables(pub Vec<HistogramTable>);

impl EncodeMetric for HistogramTable {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        self.encode_rows(&mut encoder)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

impl EncodeMetric for HistogramTables {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|table| table.encode_rows(&mut encoder))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
