"""Long tests of survival: many seeded kills."""
