"""What several tests share: datasets written by pylance, sample tables, the browser's place."""
