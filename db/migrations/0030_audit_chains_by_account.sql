-- Seals by account cover the entries of earlier seals once more.
INSERT INTO "audit_unsealed" ("seq") SELECT "seq" FROM "audit_events" ON CONFLICT DO NOTHING;
