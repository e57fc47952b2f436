"""The messages of a Parquet file around its pages, which PyArrow neither moves nor writes: footers and page indexes.

Pages are bytes here. What decodes or encodes values is PyArrow's."""
