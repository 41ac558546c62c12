"""JSON Schemas that tool servers wrote: whether one can be used at all (`measuring`), and values against it
(`validating`). Whatever a schema says, both end within a bounded number of steps."""
