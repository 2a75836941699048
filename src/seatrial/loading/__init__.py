"""Files that people write become core models here, or every diagnostic at once."""
