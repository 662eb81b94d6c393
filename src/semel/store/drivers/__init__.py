"""One thin adapter a driver: it executes statements and names errors; it knows no job."""
