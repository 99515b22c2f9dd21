-- http_api no longer accepts Airbyte manifests: such account connectors become airbyte_manifest. Their id stays, and
-- so do connections, streams and states. Secrets are sealed for that id, and the secret parameter has the same name in
-- both connectors, so that they need no new envelope.
UPDATE "account_connectors"
SET "connector_name" = 'airbyte_manifest',
	"parameters" = ("parameters" - 'definition') || jsonb_build_object('manifest', "parameters" -> 'definition')
WHERE "connector_type" = 'source'
	AND "connector_name" = 'http_api'
	AND ("parameters" ->> 'definition' ~ '(?n)^type:\s*["'']?DeclarativeSource\y'
		OR "parameters" ->> 'definition' ~ '"type"\s*:\s*"DeclarativeSource"');
