"""Against what nobody here wrote: Microsoft's renderer of Adaptive Cards, its schemas, its local Teams client."""
