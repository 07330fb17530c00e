"""Lakes on S3, tried against a real server that speaks its protocol, on loopback."""
