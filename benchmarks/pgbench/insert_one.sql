-- One job a commit.
INSERT INTO jobs (kind, payload) VALUES ('nothing', '{"i": 1234, "to": "user1234@example.com"}');
