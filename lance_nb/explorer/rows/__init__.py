"""The tab of rows: the grid, its queries, profiles and exports."""
